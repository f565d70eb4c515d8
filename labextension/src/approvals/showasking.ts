/** Leads to what waits for the user. */
import { CommandIDs, isProposed } from '../tokens';
import type { Execute, IAgentSession, IExecution } from '../tokens';

/** Show it in the notebook where it would run, else in its session's document. */
export function showAsking(execution: IExecution, execute: Execute): void {
  const { document, id: execution_id, session_id } = execution;
  void (document && isProposed(execution)
    ? execute(CommandIDs.goToProposal, { execution_id, path: document.path })
    : execute(CommandIDs.openSession, { execution_id, session_id }));
}

/** Open the notebook for which a session proposes changes. */
export function showProposed({ path }: IAgentSession, execute: Execute): void {
  void execute(CommandIDs.goToCell, { path });
}
