/** Lets a person stop what an agent runs. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { stopIcon } from '@jupyterlab/ui-components';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';
import {
  CommandIDs,
  IActivityModel,
  IAgentsAtWork,
  isFinal,
  isRunning,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { IAgent } from '../tokens';
import { stoppedText, stopText } from '../widgets/atworkwording';
import { reporter } from './report';
import { labelled, sessionArgs, watchSelected } from './selected';

/** What can be stopped. */
interface ITarget {
  sessionId: string;
  agent: IAgent | null;
  seq: number | null;
}

/** How long a notification stays that all is well, and one that it is not. */
const WELL = 5000;
const NOT_WELL = 15_000;

/** The arguments of the command. */
function stopArgs(trans: TranslationBundle): ReadonlyJSONObject {
  const { properties } = sessionArgs(trans);
  const { label } = properties as ReadonlyJSONObject;
  return {
    type: 'object',
    properties: {
      session_id: {
        type: 'string',
        description: trans.__(
          'The id of an agent session; without it, the one chosen in the panel, or else the only one at work'
        )
      },
      chosen: {
        type: 'boolean',
        description: trans.__(
          'Whether only the one chosen in the panel is meant'
        )
      },
      label
    }
  };
}

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

/** What the command would stop; null if nothing can be stopped. */
function findTarget(
  { chosen, session_id }: ReadonlyPartialJSONObject,
  model: IActivityModel,
  atWork: IAgentsAtWork
): ITarget | null {
  if (typeof session_id === 'string') {
    return targetOf(session_id, model, atWork);
  }
  const { selected } = model;
  if (selected?.session?.status === 'open') {
    const target = targetOf(selected.id, model, atWork);
    const isBusy = selected.session.kernel?.execution_state === 'busy';
    if (isBusy || target.seq !== null) {
      return target;
    }
  }
  const [only, ...others] = atWork.agents;
  return only && others.length === 0 && chosen !== true
    ? targetOf(only.session.id, model, atWork)
    : null;
}

/** Stop an agent, and tell what became of it. */
async function stop(
  { agent, seq, sessionId }: ITarget,
  atWork: IAgentsAtWork,
  trans: TranslationBundle
): Promise<void> {
  const doing = agent
    ? stopText(agent, seq, trans)
    : trans.__('Stop the agent');
  const id = Notification.emit(trans.__('%1…', doing), 'in-progress', {
    autoClose: false
  });
  try {
    const { isFree, text } = stoppedText(await atWork.stop(sessionId), trans);
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

/** The command that interrupts a session's kernel. */
export const interruptPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:interrupt',
  description: 'Adds a command that stops what an agent runs.',
  autoStart: true,
  requires: [IActivityModel, IAgentsAtWork],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    atWork: IAgentsAtWork,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const command = CommandIDs.interrupt;
    const name = (args: ReadonlyPartialJSONObject): string => {
      const target = findTarget(args, model, atWork);
      return target?.agent
        ? stopText(target.agent, target.seq, trans)
        : trans.__('Stop Agent');
    };
    commands.addCommand(command, {
      label: args => labelled(name(args))(args),
      caption: args =>
        args.chosen === true
          ? trans.__('%1, in the chosen agent session', name(args))
          : trans.__('Interrupt what the agent runs, and see its kernel free'),
      icon: stopIcon,
      describedBy: { args: stopArgs(trans) },
      isEnabled: args => findTarget(args, model, atWork) !== null,
      execute: async args => {
        const target = findTarget(args, model, atWork);
        if (target) {
          await stop(target, atWork, trans);
        }
      }
    });
    const notify = () => commands.notifyCommandChanged(command);
    watchSelected(model, notify);
    atWork.changed.connect(notify);
    palette?.addItem({ command, category: trans.__('Agents') });
  }
};
