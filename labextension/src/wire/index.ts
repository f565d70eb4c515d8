/**
 * The JSON that crosses the wire, with the server's own names; docs/reference/api.md says
 * what they mean. Answers and requests are generated from the OpenAPI document.
 */
import type { Schemas } from './schemas';

/** Where the server's routes live, below the base URL. */
export const API_NAMESPACE = 'api/agent-exec';

/** The events that say what changed. */
export const ACTIVITY_SCHEMA_ID =
  'https://schema.jupyter.org/jupyter_agent_exec/activity/v1';

export type IAgent = Schemas['Agent'];
export type ITarget = Schemas['Session']['target'];
export type IAgentSession = Schemas['Session'];
export type ISessionList = Schemas['SessionList'];
export type IExecution = Schemas['Execution'];
export type IExecutionList = Schemas['ExecutionList'];
export type IDocument = Schemas['Document'];
export type IInput = Schemas['Input'];
export type IWaitingFor = Schemas['WaitingFor'];
export type IApproval = Schemas['Approval'];
export type IPreview = Schemas['Preview'];
export type IRefusal = Schemas['Refusal'];
export type IChanges = Schemas['Changes'];
export type IVariableChange = Schemas['VariableChange'];
export type ILeftOut = Schemas['LeftOut'];
export type ICheckpointList = Schemas['CheckpointList'];
export type IKernelRun = Schemas['KernelRun'];
export type IKernelRunList = Schemas['KernelRunList'];
export type IStaleness = Schemas['Staleness'];
export type IReview = Schemas['Review'];
export type IImage = Schemas['Image'];
export type ITextRange = Schemas['Text'];
export type IStatusChange = Schemas['StatusChange'];
export type IOutputChange = Schemas['OutputChange'];
export type IJournalEvent = Schemas['JournalEvent'];
export type IJournalEventList = Schemas['JournalEventList'];
export type ISearchHit = Schemas['SearchHit'];
export type ISearchResults = Schemas['SearchResults'];
export type GrantSpan = NonNullable<Schemas['Approve']['grant']>;
export type IProposal = Schemas['Proposal'];
export type IProposedEdit = Schemas['ProposedEdit'];
export type IKeepEdits = Schemas['KeepEdits'];
export type IRejectEdits = Schemas['RejectEdits'];
export type EditDecision = 'keep' | 'reject' | 'undo';
export type IProposalList = Schemas['ProposalList'];
export type IApprovalList = Schemas['Approvals'];
export type ITokenRef = Schemas['TokenRef'];
export type IRoundUndone = Schemas['RoundUndone'];
export type IUnlocked = Schemas['Unlocked'];
export type Status = Schemas['Execution']['status'];
export type RecordPeople = Schemas['Session']['record_people'];
export type Verdict = NonNullable<Schemas['Review']['verdict']>;
export type PlacedOutputs = Schemas['Document']['outputs'];

/** Which kernel a session asked for; null if it is one that runs. */
export function kernelName({ kernel, target }: IAgentSession): string | null {
  return kernel?.name ?? ('kernel_name' in target ? target.kernel_name : null);
}

/** The statuses from which an execution still moves on. */
const PENDING: ReadonlySet<Status> = new Set([
  'awaiting_approval',
  'queued',
  'running',
  'awaiting_input'
]);

/** Whether an execution with this status will change no more. */
export function isFinal(status: Status): boolean {
  return !PENDING.has(status);
}

/** Whether an execution is shown at its place in a notebook until it runs. */
export function isProposed({
  document,
  status
}: Pick<IExecution, 'document' | 'status'>): boolean {
  return document?.status === 'proposed' && !isFinal(status);
}

/** Whether the code of an execution with this status is in the kernel. */
export function isRunning(status: Status): boolean {
  return status === 'running' || status === 'awaiting_input';
}

/** What a notebook's cell says of the execution that it shows. */
export interface ICellRecord {
  session_id: string;
  execution_id: string;
  /** Its number in the session; null if the cell does not say. */
  seq: number | null;
  agent: IAgent;
  username: string;
  /** Why the agent ran it, in its own words. */
  purpose: string | null;
  status: Status;
  reason: string | null;
  accepted_at: string;
  started_at: string | null;
  finished_at: string | null;
  source_sha256: string;
  /** Whether the user edited the source when they approved it. */
  was_edited: boolean;
  /** Of the agent's execution; a cell with another was run again since. */
  execution_count: number | null;
  outputs: PlacedOutputs;
  /** Mime types of what is held back. */
  held: readonly string[];
  /** The cell's id, if the notebook's format has none of its own. */
  cell_id: string | null;
}

/** Something changed in an agent session: ids and statuses only. */
export interface IActivityEvent {
  serial: number;
  action:
    | 'opened'
    | 'closed'
    | 'kernel'
    | 'execution'
    | 'notebook'
    | 'proposals'
    | 'person'
    | 'session'
    | 'approvals'
    | 'tokens';
  /** Empty with `approvals` and `tokens`, which are about no session. */
  session_id: string;
  length: number;
  execution_id?: string;
  seq?: number;
  status?: string;
}
