/** Puts copies of agents' cells into a person's notebook. */
import type { Notebook } from '@jupyterlab/notebook';
import { copiedCell } from './origin';
import type { IAgentExecApi } from '../api/client';
import type { IExecution } from '../wire';

/** Cells fetched at once. */
const PAGE = 50;

/** Which executions are meant: some by id, or a session's from one on. */
export type Wanted =
  { ids: readonly string[] } | { sessionId: string; fromId: string | null };

/** Read the executions that are meant, in order, with inert outputs. */
export async function readWanted(
  api: IAgentExecApi,
  wanted: Wanted
): Promise<IExecution[]> {
  if ('ids' in wanted) {
    return Promise.all(wanted.ids.map(id => api.getExecution(id, true)));
  }
  const { fromId, sessionId } = wanted;
  const first = fromId === null ? null : await api.getExecution(fromId);
  const executions: IExecution[] = [];
  let after: number | null = (first?.seq ?? 1) - 1;
  while (after !== null) {
    const list = await api.listExecutions(sessionId, {
      after,
      limit: PAGE,
      inert: true
    });
    executions.push(...list.executions);
    after = list.next_after;
  }
  return executions;
}

/**
 * Put copies below the active cell, in one step of the person's own undo.
 *
 * They are selected then, and the last is active: what is put next comes after.
 */
export function insertCopies(
  notebook: Notebook,
  executions: readonly IExecution[],
  withOutputs: boolean
): void {
  const { activeCellIndex, model } = notebook;
  if (!model || executions.length === 0) {
    return;
  }
  const at = Math.min(activeCellIndex + 1, model.cells.length);
  const { sharedModel } = model;
  sharedModel.transact(() => {
    sharedModel.insertCells(
      at,
      executions.map(each => copiedCell(each, withOutputs))
    );
  });
  notebook.deselectAll();
  notebook.mode = 'command';
  notebook.activeCellIndex = at;
  if (executions.length > 1) {
    notebook.extendContiguousSelectionTo(at + executions.length - 1);
  }
}
