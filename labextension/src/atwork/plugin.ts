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
import { CommandIDs, ILiveModel, TRANSLATION_DOMAIN } from '../tokens';
import type { IAgentAtWork } from '../tokens';
import { createRunning } from './running';
import { AtWorkItem } from './statusitems';
import { stoppedText, stopText } from './atworkwording';
import { labelled, notebookInFront, reporter, takes } from '../ui/commands';

/** The status bar item's id, and its place: after the kernels. */
const ITEM = 'jupyter-agent-exec:at-work';
const RANK = 5;

/** How long a notification stays that all is well, and one that it is not. */
const WELL = 5000;
const NOT_WELL = 15_000;

/** What is done when an agent is stopped. */
function targetText(
  { current, session }: IAgentAtWork,
  trans: TranslationBundle
): string {
  return stopText(session.agent, current, trans);
}

/** What the command could stop: the agents in the document in front, or all. */
function findTargets(
  { session_id }: ReadonlyPartialJSONObject,
  live: ILiveModel,
  front: () => NotebookPanel | null
): readonly IAgentAtWork[] {
  const chosen = live.get(String(session_id ?? live.selected));
  const notebook = session_id ? null : front();
  if (notebook) {
    const kernelId = notebook.sessionContext.session?.kernel?.id ?? null;
    const here = live
      .at(notebook.context.localPath, kernelId)
      .filter(({ pending }) => pending.length > 0);
    if (here.length > 0) {
      return here;
    }
  }
  return chosen?.current ? [chosen] : session_id ? [] : live.agents;
}

/** Let a person say which of several to stop; none if they stop none. */
async function askWhich(
  targets: readonly IAgentAtWork[],
  trans: TranslationBundle
): Promise<readonly IAgentAtWork[]> {
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
  target: IAgentAtWork,
  live: ILiveModel,
  trans: TranslationBundle
): Promise<void> {
  const doing = targetText(target, trans);
  const id = Notification.emit(`${doing}…`, 'in-progress', {
    autoClose: false
  });
  try {
    const stopped = await live.stop(target.session.id);
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

/** Add the commands that interrupt sessions' kernels: one's, or all. */
function addStopCommands(
  commands: CommandRegistry,
  live: ILiveModel,
  front: () => NotebookPanel | null,
  trans: TranslationBundle
): void {
  const command = CommandIDs.interrupt;
  const targets = (args: ReadonlyPartialJSONObject) =>
    findTargets(args, live, front);
  const name = (args: ReadonlyPartialJSONObject): string => {
    const [target, ...others] = targets(args);
    if (others.length > 0) {
      return trans.__('Stop Agent…');
    }
    return target ? targetText(target, trans) : trans.__('Stop Agent');
  };
  commands.addCommand(command, {
    label: args => labelled(name(args))(args),
    caption: name,
    icon: stopIcon,
    describedBy: takes('session_id', 'label'),
    isEnabled: args => targets(args).length > 0,
    execute: async args => {
      await live.refresh(); // others may be at work now
      const found = targets(args);
      const wanted = found.length > 1 ? await askWhich(found, trans) : found;
      await Promise.all(wanted.map(each => stop(each, live, trans)));
    }
  });
  commands.addCommand(CommandIDs.stopAll, {
    label: trans.__('Stop All Agents'),
    icon: stopIcon,
    describedBy: takes(),
    isEnabled: () => live.agents.length > 0,
    execute: async () => {
      await live.refresh();
      await Promise.all(live.agents.map(each => stop(each, live, trans)));
    }
  });
  live.changed.connect(() => {
    commands.notifyCommandChanged(command);
    commands.notifyCommandChanged(CommandIDs.stopAll);
  });
}

/** The agents at work in the status bar, and the command that stops one. */
export const atWorkPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:at-work',
  description:
    'Shows in the status bar what waits for you and the agents at work, which it stops. Lists open sessions in "Running Terminals and Kernels".',
  autoStart: true,
  requires: [ILiveModel],
  optional: [
    INotebookTracker,
    IStatusBar,
    IRunningSessionManagers,
    ITranslator,
    ICommandPalette
  ],
  activate: (
    app: JupyterFrontEnd,
    live: ILiveModel,
    notebooks: INotebookTracker | null,
    statusBar: IStatusBar | null,
    running: IRunningSessionManagers | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    addStopCommands(commands, live, notebookInFront(app, notebooks), trans);
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.interrupt, category });
    palette?.addItem({ command: CommandIDs.stopAll, category });
    const execute = commands.execute.bind(commands);
    running?.add(createRunning(live, execute, trans));
    const item = new AtWorkItem(live, trans, execute);
    statusBar?.registerStatusItem(ITEM, {
      item,
      align: 'left',
      rank: RANK,
      isActive: () => item.isActive,
      activeStateChanged: live.changed
    });
  }
};
