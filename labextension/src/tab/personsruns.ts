/** What a person ran in cells that show agents' executions. */
import type { ICellModel } from '@jupyterlab/cells';
import type { PartialJSONValue } from '@lumino/coreutils';

/**
 * Remembers which executions were in cells when a person ran them.
 *
 * JupyterLab takes the outputs away then, and what comes next is the person's,
 * though the agent's execution may still go on.
 */
export class PersonsRuns {
  /** A person runs a cell. */
  add(cell: ICellModel): void {
    const agentExec = cell.getMetadata('agent_exec') as PartialJSONValue;
    const id = executionId(agentExec);
    if (id !== null) {
      const ids = this._ids.get(cell.id) ?? new Set();
      this._ids.set(cell.id, ids.add(id));
    }
  }

  /**
   * Return whether a person has run the cell since this execution was in it: its
   * outputs are theirs then.
   */
  own(cellId: string, agentExec: PartialJSONValue | undefined): boolean {
    const id = executionId(agentExec);
    return id !== null && (this._ids.get(cellId)?.has(id) ?? false);
  }

  /** By cell. */
  private readonly _ids = new Map<string, Set<string>>();
}

/** The execution that writes to a cell by itself; a person's acceptance is done whatever ran since. */
function executionId(agentExec: PartialJSONValue | undefined): string | null {
  const { execution_id: id, outputs } = Object(agentExec);
  return typeof id === 'string' && outputs !== 'accepted' ? id : null;
}
