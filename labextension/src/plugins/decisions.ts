/** What commands that decide about notebooks have in common: a way back. */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';
import type { IActivityModel, IAgentExecApi, IExecutionList } from '../tokens';
import { plainName } from '../widgets/notebookwording';
import { reporter } from './report';
import { sessionArgs, sessionCommand } from './selected';

/** Milliseconds for which the way back is in sight; it stays in the list. */
const SHOWN = 8000;

/** The arguments of a decision about one execution. */
function executionArgs(trans: TranslationBundle): ReadonlyJSONObject {
  return {
    type: 'object',
    properties: {
      execution_id: {
        type: 'string',
        description: trans.__('The id of the execution')
      },
      cell_id: {
        type: 'string',
        description: trans.__('The id of the cell that was looked at')
      }
    },
    required: ['execution_id']
  };
}

/** Where an execution's cell is, if it is another than the one looked at. */
async function originalOf(
  api: IAgentExecApi,
  executionId: string,
  cellId: string
): Promise<string | null> {
  const { document } = await api.getExecution(executionId);
  return document?.cell_id && document.cell_id !== cellId
    ? document.path
    : null;
}

/** Take back each of several decisions, as far as that goes. */
async function undoAll(
  ids: readonly string[],
  undo: (id: string) => Promise<unknown>,
  report: (error: unknown) => void
): Promise<void> {
  const failures: unknown[] = [];
  for (const id of ids) {
    await undo(id).catch(error => failures.push(error));
  }
  if (failures.length > 0) {
    report(failures[0]);
  }
}

/** Say what was done, and offer to take it back. */
function offerUndo(
  said: string,
  ids: readonly string[],
  undo: (id: string) => Promise<unknown>,
  trans: TranslationBundle
): void {
  Notification.info(said, {
    autoClose: SHOWN,
    actions: [
      {
        label: trans.__('Undo'),
        caption: trans.__('Let the notebook be as it was before'),
        callback: () => void undoAll(ids, undo, reporter(trans))
      }
    ]
  });
}

/** What is done to one execution, and how that is told and taken back. */
interface IDecision {
  decide: (id: string) => Promise<unknown>;
  /** Null if it is itself the way back. */
  undo: ((id: string) => Promise<unknown>) | null;
  said: string;
}

/** A command that decides about one execution in its notebook. */
export function decision(
  api: IAgentExecApi,
  trans: TranslationBundle,
  { decide, said, undo }: IDecision
): Pick<CommandRegistry.ICommandOptions, 'describedBy' | 'execute'> {
  const report = reporter(trans);
  const execute = async ({
    cell_id,
    execution_id
  }: ReadonlyPartialJSONObject) => {
    const id = String(execution_id);
    const original =
      typeof cell_id === 'string' ? await originalOf(api, id, cell_id) : null;
    if (original !== null) {
      Notification.warning(
        trans.__(
          'This cell is a copy. Decide about it where the agent ran it: %1',
          plainName(original)
        ),
        { autoClose: SHOWN }
      );
      return;
    }
    await decide(id);
    if (undo) {
      offerUndo(said, [id], undo, trans);
    }
  };
  return {
    describedBy: { args: executionArgs(trans) },
    execute: args => execute(args).catch(report)
  };
}

/** What is done to all of a session, and how that is told and taken back. */
interface ISessionDecision {
  decide: (sessionId: string) => Promise<IExecutionList>;
  undo: (id: string) => Promise<unknown>;
  said: (cells: number) => string;
  nothing: string;
}

/** A command that decides about all of a session in its notebook. */
export function sessionDecision(
  model: IActivityModel,
  trans: TranslationBundle,
  { decide, nothing, said, undo }: ISessionDecision
): Pick<
  CommandRegistry.ICommandOptions,
  'describedBy' | 'execute' | 'isEnabled'
> {
  const act = async (sessionId: string) => {
    const { executions } = await decide(sessionId);
    if (executions.length === 0) {
      Notification.info(nothing, { autoClose: SHOWN });
      return;
    }
    const ids = executions.map(({ id }) => id);
    offerUndo(said(ids.length), ids, undo, trans);
  };
  return {
    ...sessionCommand(model, trans)(
      act,
      () => model.selected?.session?.target.kind === 'notebook'
    ),
    describedBy: { args: sessionArgs(trans) }
  };
}
