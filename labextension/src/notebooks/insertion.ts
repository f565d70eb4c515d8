/** Puts copies of agents' cells into a person's notebook. */
import type { Notebook } from '@jupyterlab/notebook';
import { copiedCell } from './origin';
import type { IExecution } from '../wire';

/**
 * Put copies below the active cell, in one step of the person's own undo.
 *
 * They are selected then, and the last is active: what is put next comes after.
 */
export function insertCopies(
  notebook: Notebook,
  executions: readonly IExecution[]
): void {
  const { activeCellIndex, model } = notebook;
  if (!model || executions.length === 0) {
    return;
  }
  const at = Math.min(activeCellIndex + 1, model.cells.length);
  const { sharedModel } = model;
  sharedModel.transact(() => {
    sharedModel.insertCells(at, executions.map(copiedCell));
  });
  notebook.deselectAll();
  notebook.mode = 'command';
  notebook.activeCellIndex = at;
  if (executions.length > 1) {
    notebook.extendContiguousSelectionTo(at + executions.length - 1);
  }
}
