/** Shows which agents are at work, stops them and closes their sessions. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  InputDialog,
  Notification
} from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { stopIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { AgentsAtWork } from '../live/atwork';
import {
  CommandIDs,
  IActivityModel,
  IAgentsAtWork,
  IApprovalsModel,
  isFinal,
  isRunning,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { IAgent } from '../tokens';
import { createRunning } from './running';
import { AtWorkItem } from './statusitems';
import { stoppedText, stopText } from './atworkwording';
import { labelled, reporter, takes, watchSelected } from '../ui/commands';

/** The status bar item's id, and its place: after the kernels. */
const ITEM = 'jupyter-agent-exec:at-work';
const RANK = 5;

/** What can be stopped. */
interface ITarget {
  sessionId: string;
  agent: IAgent | null;
  seq: number | null;
}

/** How long a notification stays that all is well, and one that it is not. */
const WELL = 5000;
const NOT_WELL = 15_000;

/** What a session runs, or else what of it waits. */
function targetOf(
  sessionId: string,
  model: IActivityModel,
  atWork: IAgentsAtWork
): ITarget {
  const selected = model.selected?.id === sessionId ? model.selected : null;
  const pending = [
    ...(atWork.get(sessionId)?.pending ?? []),
    ...(selected?.executions ?? []).flatMap(({ execution }) =>
      isFinal(execution.status) ? [] : [execution]
    )
  ];
  const first = pending.find(({ status }) => isRunning(status)) ?? pending[0];
  const session = atWork.get(sessionId)?.session ?? selected?.session;
  return { sessionId, agent: session?.agent ?? null, seq: first?.seq ?? null };
}

/** What is done when a target is stopped. */
function targetText({ agent, seq }: ITarget, trans: TranslationBundle): string {
  return agent ? stopText(agent, seq, trans) : trans.__('Stop Agent');
}

/**
 * What the command could stop: what the active cell of the notebook in front
 * runs, or the agents in it, or the session whose document is in front, or all.
 */
function findTargets(
  { chosen, session_id }: ReadonlyPartialJSONObject,
  model: IActivityModel,
  atWork: IAgentsAtWork,
  front: () => NotebookPanel | null
): ITarget[] {
  const target = (sessionId: string) => targetOf(sessionId, model, atWork);
  if (typeof session_id === 'string') {
    const found = target(session_id);
    return chosen === true && found.seq === null ? [] : [found];
  }
  const notebook = chosen === true ? null : front();
  if (notebook) {
    const { content, context, sessionContext } = notebook;
    const kernelId = sessionContext.session?.kernel?.id ?? null;
    const here = atWork
      .at(context.path, kernelId)
      .filter(({ pending }) => pending.length > 0);
    const metadata = content.activeCell?.model.getMetadata(METADATA_KEY);
    const active = readCellRecord(metadata)?.execution_id;
    const ofCell = here.filter(({ pending }) =>
      pending.some(({ id }) => id === active)
    );
    const found = ofCell.length > 0 ? ofCell : here;
    if (found.length > 0) {
      return found.map(({ session }) => target(session.id));
    }
  }
  const { selected } = model;
  if (selected?.session?.status === 'open') {
    const chosenTarget = target(selected.id);
    const isBusy = selected.session.kernel?.execution_state === 'busy';
    if (isBusy || chosenTarget.seq !== null) {
      return [chosenTarget];
    }
  }
  return chosen === true
    ? []
    : atWork.agents.map(({ session }) => target(session.id));
}

/** Let a person say which of several to stop; none if they stop none. */
async function askWhich(
  targets: readonly ITarget[],
  trans: TranslationBundle
): Promise<readonly ITarget[]> {
  const all = trans.__('All of them');
  const names = targets.map(
    (each, n) => `${n + 1}. ${targetText(each, trans)}`
  );
  const { value } = await InputDialog.getItem({
    title: trans.__('Stop Agent'),
    label: trans.__('Several agents are at work.'),
    items: [...names, all],
    okLabel: trans.__('Stop')
  });
  return value === all ? targets : targets.filter((_, n) => names[n] === value);
}

/** Stop an agent, and tell what became of it. */
async function stop(
  target: ITarget,
  atWork: IAgentsAtWork,
  trans: TranslationBundle
): Promise<void> {
  const doing = targetText(target, trans);
  const id = Notification.emit(`${doing}…`, 'in-progress', {
    autoClose: false
  });
  try {
    const stopped = await atWork.stop(target.sessionId);
    const { isFree, text } = stoppedText(stopped, trans);
    Notification.update({
      id,
      message: text,
      type: isFree ? 'success' : 'warning',
      autoClose: isFree ? WELL : NOT_WELL
    });
  } catch (error) {
    Notification.dismiss(id);
    reporter(trans)(error);
  }
}

/** Add the command that interrupts a session's kernel. */
function addStopCommand(
  commands: CommandRegistry,
  model: IActivityModel,
  atWork: IAgentsAtWork,
  front: () => NotebookPanel | null,
  trans: TranslationBundle
): void {
  const command = CommandIDs.interrupt;
  const targets = (args: ReadonlyPartialJSONObject) =>
    findTargets(args, model, atWork, front);
  const name = (args: ReadonlyPartialJSONObject): string => {
    const [target, ...others] = targets(args);
    if (others.length > 0) {
      return trans.__('Stop Agent…');
    }
    return target ? targetText(target, trans) : trans.__('Stop Agent');
  };
  commands.addCommand(command, {
    label: args => labelled(name(args))(args),
    caption: args =>
      args.chosen === true
        ? trans.__('%1, in this agent session', name(args))
        : name(args),
    icon: stopIcon,
    describedBy: takes('session_id', 'chosen', 'label'),
    isEnabled: args => targets(args).length > 0,
    execute: async args => {
      const found = targets(args);
      const wanted = found.length > 1 ? await askWhich(found, trans) : found;
      await Promise.all(wanted.map(each => stop(each, atWork, trans)));
    }
  });
  const notify = () => commands.notifyCommandChanged(command);
  watchSelected(model, notify);
  atWork.changed.connect(notify);
}

/** One model for all that shows or stops agents, kept up to date. */
function createModel(
  app: JupyterFrontEnd,
  model: IActivityModel,
  approvals: IApprovalsModel
): IAgentsAtWork {
  const { connectionFailure, events } = app.serviceManager;
  const isPaused = () => approvals.paused !== null;
  const atWork = new AgentsAtWork(model.api, events.stream, isPaused);
  const refresh = () => atWork.refresh();
  document.addEventListener('visibilitychange', refresh);
  connectionFailure.connect(refresh);
  model.refreshed.connect(refresh);
  let paused = false;
  approvals.changed.connect(() => {
    if (paused !== isPaused()) {
      paused = isPaused();
      refresh();
    }
  });
  approvals.reconnected.connect(refresh);
  void app.restored.then(refresh);
  return atWork;
}

/** The agents at work in the status bar, and the command that stops one. */
export const atWorkPlugin: JupyterFrontEndPlugin<IAgentsAtWork> = {
  id: 'jupyter-agent-exec:at-work',
  description:
    'Shows in the status bar what waits for you and the agents at work, which it stops. Lists open sessions in "Running Terminals and Kernels".',
  autoStart: true,
  provides: IAgentsAtWork,
  requires: [IActivityModel, IApprovalsModel],
  optional: [
    INotebookTracker,
    IStatusBar,
    IRunningSessionManagers,
    ITranslator,
    ICommandPalette
  ],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    approvals: IApprovalsModel,
    notebooks: INotebookTracker | null,
    statusBar: IStatusBar | null,
    running: IRunningSessionManagers | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): IAgentsAtWork => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const atWork = createModel(app, model, approvals);
    const front = () => {
      const notebook = notebooks?.currentWidget ?? null;
      return notebook === shell.currentWidget ? notebook : null;
    };
    addStopCommand(commands, model, atWork, front, trans);
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.interrupt, category });
    const execute = commands.execute.bind(commands);
    running?.add(createRunning(atWork, model.api, execute, trans));
    const item = new AtWorkItem(atWork, approvals, trans, execute);
    statusBar?.registerStatusItem(ITEM, {
      item,
      align: 'left',
      rank: RANK,
      isActive: () => item.isActive,
      activeStateChanged: item.activeChanged
    });
    return atWork;
  }
};
