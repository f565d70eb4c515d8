/** Leads to what waits for the user. */
import { CommandIDs, isProposed } from '../tokens';
import type { Execute, IAgentSession, IExecution } from '../tokens';

/** The notebook in which it is asked; null if only its session's document asks. */
export function askedIn(execution: IExecution): string | null {
  const { document, status } = execution;
  const isAtCell = status === 'awaiting_input' && document?.cell_id;
  return document && (isAtCell || isProposed(execution)) ? document.path : null;
}

/** Show what asks where it is asked. */
export function showAsking(execution: IExecution, execute: Execute): void {
  const { id: execution_id, session_id } = execution;
  const path = askedIn(execution);
  void (path === null
    ? execute(CommandIDs.openSession, { execution_id, session_id })
    : execute(CommandIDs.goToProposal, { execution_id, path }));
}

/** Open the notebook for which a session proposes changes. */
export function showProposed({ path }: IAgentSession, execute: Execute): void {
  void execute(CommandIDs.goToCell, { path });
}
