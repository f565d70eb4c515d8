/** The commands that decide about agents' cells and outputs in notebooks. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  checkIcon,
  closeIcon,
  deleteIcon,
  undoIcon
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { CommandIDs } from '../tokens';
import type { IActivityModel, IAgentExecApi, IExecutionList } from '../tokens';
import { plainName } from '../widgets/notebookwording';
import {
  describedBy,
  reporter,
  sessionCommand,
  watchSelected
} from './commands';

/** Milliseconds for which a notification offers to undo a decision. */
const UNDO_SHOWN = 8000;

type Undo = (executionId: string) => Promise<unknown>;

/** Where an execution's cell is, if it is another than the one with this id. */
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

/** Say what was done, and offer to undo it. */
function offerUndo(
  message: string,
  ids: readonly string[],
  undo: Undo,
  trans: TranslationBundle
): void {
  const undoAll = async () => {
    const failures: unknown[] = [];
    for (const id of ids) {
      await undo(id).catch(error => failures.push(error));
    }
    if (failures.length > 0) {
      reporter(trans)(failures[0]);
    }
  };
  Notification.info(message, {
    autoClose: UNDO_SHOWN,
    actions: [
      {
        label: trans.__('Undo'),
        caption: trans.__('Undo this change in the notebook'),
        callback: () => void undoAll()
      }
    ]
  });
}

type Looks = Pick<
  CommandRegistry.ICommandOptions,
  'label' | 'caption' | 'icon'
>;

/** A decision about one execution. */
interface IDecision extends Looks {
  execute: (executionId: string) => Promise<unknown>;
  /** What is notified, and how it is undone; null if it is itself an undo. */
  done: { message: string; undo: Undo } | null;
}

/** A decision about all executions of a session. */
interface ISessionDecision extends Looks {
  execute: (sessionId: string) => Promise<IExecutionList>;
  message: (cells: number) => string;
  nothing: string;
  undo: Undo;
}

/** Adds the commands; each can be undone. */
class Decisions {
  constructor(
    private readonly _commands: CommandRegistry,
    private readonly _model: IActivityModel,
    private readonly _trans: TranslationBundle,
    private readonly _palette: ICommandPalette | null
  ) {}

  /** Add a command about one execution. */
  add(id: string, { done, execute, ...options }: IDecision): void {
    const trans = this._trans;
    const decide = async (args: ReadonlyPartialJSONObject) => {
      const executionId = String(args.execution_id);
      const original =
        typeof args.cell_id === 'string'
          ? await originalOf(this._model.api, executionId, args.cell_id)
          : null;
      if (original !== null) {
        Notification.warning(
          trans.__(
            'This cell is a copy. Accept or discard the original cell: %1',
            plainName(original)
          ),
          { autoClose: UNDO_SHOWN }
        );
        return;
      }
      await execute(executionId);
      if (done) {
        offerUndo(done.message, [executionId], done.undo, trans);
      }
    };
    this._commands.addCommand(id, {
      ...options,
      describedBy: describedBy(
        {
          execution_id: trans.__('The ID of the execution'),
          cell_id: trans.__('The ID of the cell in the notebook')
        },
        ['execution_id']
      ),
      execute: args => decide(args).catch(reporter(trans))
    });
  }

  /** Add a command about all of a session. */
  addForSession(id: string, decision: ISessionDecision): void {
    const { execute, message, nothing, undo, ...options } = decision;
    const model = this._model;
    const trans = this._trans;
    const decide = async (sessionId: string) => {
      const ids = (await execute(sessionId)).executions.map(each => each.id);
      if (ids.length === 0) {
        Notification.info(nothing, { autoClose: UNDO_SHOWN });
      } else {
        offerUndo(message(ids.length), ids, undo, trans);
      }
    };
    this._commands.addCommand(id, {
      ...options,
      ...sessionCommand(
        model,
        trans,
        decide,
        () => model.selected?.session?.target.kind === 'notebook'
      )
    });
    watchSelected(model, () => this._commands.notifyCommandChanged(id));
    this._palette?.addItem({ command: id, category: trans.__('Agents') });
  }
}

/** Add the commands that accept, discard and restore cells and outputs. */
export function addDecisions(
  { commands }: JupyterFrontEnd,
  model: IActivityModel,
  trans: TranslationBundle,
  palette: ICommandPalette | null
): void {
  const { api } = model;
  const decisions = new Decisions(commands, model, trans, palette);
  const restoreCell: Undo = id => api.restoreCell(id);
  const restoreOutputs: Undo = id => api.restoreOutputs(id);
  decisions.add(CommandIDs.acceptOutputs, {
    label: trans.__('Accept Outputs'),
    caption: trans.__(
      'Show the original outputs in the notebook and trust them'
    ),
    icon: checkIcon,
    execute: id => api.acceptOutputs(id),
    done: { message: trans.__('Outputs accepted'), undo: restoreOutputs }
  });
  decisions.add(CommandIDs.discardOutputs, {
    label: trans.__('Discard Outputs'),
    caption: trans.__(
      'Remove the outputs from the notebook; the history keeps them'
    ),
    icon: closeIcon,
    execute: id => api.discardOutputs(id),
    done: { message: trans.__('Outputs discarded'), undo: restoreOutputs }
  });
  decisions.add(CommandIDs.restoreOutputs, {
    label: trans.__('Undo Decision About Outputs'),
    caption: trans.__(
      'Restore the outputs that the notebook showed before the last decision'
    ),
    icon: undoIcon,
    execute: restoreOutputs,
    done: null
  });
  decisions.add(CommandIDs.discardCell, {
    label: trans.__('Discard Cell'),
    caption: trans.__(
      'Remove the agent’s cell from the notebook; the history keeps it'
    ),
    icon: deleteIcon,
    execute: id => api.discardCell(id),
    done: { message: trans.__('Cell discarded'), undo: restoreCell }
  });
  decisions.add(CommandIDs.restoreCell, {
    label: trans.__('Restore Cell'),
    caption: trans.__('Restore a discarded cell to its place in the notebook'),
    icon: undoIcon,
    execute: restoreCell,
    done: null
  });
  decisions.addForSession(CommandIDs.acceptAllOutputs, {
    label: trans.__('Accept All Outputs From This Agent Session'),
    caption: trans.__(
      'Show all outputs that are held back for the selected agent session in its notebook, and trust them'
    ),
    icon: checkIcon,
    execute: id => api.acceptAllOutputs(id),
    message: cells =>
      trans._n(
        'Outputs of %1 cell accepted',
        'Outputs of %1 cells accepted',
        cells
      ),
    nothing: trans.__('No outputs are held back'),
    undo: restoreOutputs
  });
  decisions.addForSession(CommandIDs.discardAllOutputs, {
    label: trans.__('Discard All Outputs From This Agent Session'),
    caption: trans.__(
      'Remove all outputs of the selected agent session from its notebook, except those already accepted or discarded'
    ),
    icon: closeIcon,
    execute: id => api.discardAllOutputs(id),
    message: cells =>
      trans._n(
        'Outputs of %1 cell discarded',
        'Outputs of %1 cells discarded',
        cells
      ),
    nothing: trans.__('There are no outputs to discard'),
    undo: restoreOutputs
  });
  decisions.addForSession(CommandIDs.discardAllCells, {
    label: trans.__('Discard All Cells From This Agent Session'),
    caption: trans.__(
      'Remove all unchanged cells of the selected agent session from its notebook'
    ),
    icon: deleteIcon,
    execute: id => api.discardAllCells(id),
    message: cells =>
      trans._n('%1 cell discarded', '%1 cells discarded', cells),
    nothing: trans.__('There are no unchanged cells to discard'),
    undo: restoreCell
  });
}
