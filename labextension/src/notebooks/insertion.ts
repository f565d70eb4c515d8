/** Puts copies of agents' cells into a person's notebook. */
import type { INotebookModel, Notebook } from '@jupyterlab/notebook';
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { copiedCell, ORIGIN_KEY } from './origin';
import type { IOrigin } from './origin';
import { isFinal } from '../wire';
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

/** Where a notebook shows executions and cells, by their ids. */
function placesIn(model: INotebookModel): Map<string, number> {
  const places = new Map<string, number>();
  Array.from(model.cells).forEach((cell, place) => {
    const record = readCellRecord(cell.getMetadata(METADATA_KEY));
    const origin = cell.getMetadata(ORIGIN_KEY) as IOrigin | undefined;
    for (const id of [cell.id, record?.execution_id, origin?.execution_id]) {
      if (id) {
        places.set(id, place);
      }
    }
  });
  return places;
}

/** An execution that a notebook lacks. */
interface IMissing {
  readonly id: string;
  /** Where it belongs: before the cell that is there now. */
  readonly place: number;
}

/**
 * What a session's notebook lacks of it. Each belongs below the execution before
 * it, else at the end; of several in one cell, only the last is missing.
 *
 * @param executions - All of the session, in order.
 */
export function missingFrom(
  model: INotebookModel,
  executions: readonly IExecution[]
): IMissing[] {
  const places = placesIn(model);
  const ran = executions.filter(
    ({ started_at, status, trial }) =>
      started_at !== null && isFinal(status) && !trial
  );
  const cellOf = ({ document, id }: IExecution) => document?.cell_id ?? id;
  const lastOf = new Map(ran.map(each => [cellOf(each), each]));
  let place = model.cells.length;
  return ran.flatMap(each => {
    const shown = places.get(each.id) ?? places.get(cellOf(each));
    if (shown !== undefined) {
      place = shown + 1;
      return [];
    }
    return lastOf.get(cellOf(each)) === each ? [{ id: each.id, place }] : [];
  });
}

/**
 * Put copies of those that are missing by now in their places, in one step of
 * the person's own undo.
 *
 * @param executions - All of the session, in order.
 * @param read - Those that were missing, with their outputs.
 * @returns How many were put there.
 */
export function insertMissing(
  model: INotebookModel,
  executions: readonly IExecution[],
  read: readonly IExecution[]
): number {
  const { sharedModel } = model;
  const copies = missingFrom(model, executions).flatMap(({ id, place }) =>
    read.filter(each => each.id === id).map(each => ({ each, place }))
  );
  sharedModel.transact(() => {
    // From below, and of one place the last first: the others' places stay.
    for (const { each, place } of copies
      .reverse()
      .sort((one, other) => other.place - one.place)) {
      sharedModel.insertCell(place, copiedCell(each));
    }
  });
  return copies.length;
}
