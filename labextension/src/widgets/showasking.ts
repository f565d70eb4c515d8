/** Leads to what asks for approval. */
import { CommandIDs, isProposed } from '../tokens';
import type { Execute, IExecution } from '../tokens';

/** Show it in the notebook where it would run, else in the panel. */
export function showAsking(execution: IExecution, execute: Execute): void {
  const { document, id: execution_id, session_id } = execution;
  void (document && isProposed(execution)
    ? execute(CommandIDs.goToProposal, { execution_id, path: document.path })
    : execute(CommandIDs.openPanel, { execution_id, session_id }));
}
