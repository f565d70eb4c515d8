/**
 * What crosses the wire, with the server's own snake_case names; see
 * docs/api.md.
 */
import type * as nbformat from '@jupyterlab/nbformat';
import type { PartialJSONObject } from '@lumino/coreutils';
import type { Access, ITokenRef } from './wire/access';

export * from './wire/access';

/** Where the server's routes live, below the base URL. */
export const API_NAMESPACE = 'api/agent-exec';

/** The events that say what changed. */
export const ACTIVITY_SCHEMA_ID =
  'https://schema.jupyter.org/jupyter_agent_exec/activity/v1';

/** Where an execution stands. */
export type Status =
  | 'awaiting_approval'
  | 'queued'
  | 'running'
  | 'awaiting_input'
  | 'ok'
  | 'error'
  | 'interrupted'
  | 'timed_out'
  | 'kernel_died'
  | 'cancelled'
  | 'rejected'
  | 'lost';

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

/** Whether the code of an execution with this status is in the kernel. */
export function isRunning(status: Status): boolean {
  return status === 'running' || status === 'awaiting_input';
}

/** The program that asks. */
export interface IAgent {
  name: string;
  version: string | null;
  model: string | null;
}

/** Where a session's code runs; `kind` tells which of the rest there is. */
export interface ITarget {
  kind: 'scratch' | 'notebook' | 'kernel';
  kernel_name?: string | null;
  cwd?: string | null;
  path?: string;
  kernel_id?: string;
}

/** What of an agent session has to be approved before it runs. */
export type ApprovalMode = 'none' | 'first' | 'always';

/** What is recorded of what people run in a session's kernel. */
export type RecordPeople = 'off' | 'source' | 'outputs';

/** Where a session's journal ends. */
export interface IChain {
  head: string;
  length: number;
}

/** The kernel of a session. */
export interface ISessionKernel {
  id: string;
  name: string;
  execution_state: 'starting' | 'idle' | 'busy' | 'dead';
  incarnation: number;
}

/** What a person thinks of an execution that has run. */
export type Verdict = 'approved' | 'flagged';

/** What a person said of an execution, or of a session. */
export interface IReview {
  /** Null if there is only a comment. */
  verdict: Verdict | null;
  comment: string | null;
  by: string;
  at: string;
  /** Whether it was said of all that the session had run. */
  whole_session: boolean;
}

/** One agent's work with one kernel. */
export interface IAgentSession {
  id: string;
  agent: IAgent;
  target: ITarget;
  title: string | null;
  status: 'open' | 'closed';
  close_reason: string | null;
  username: string;
  access: Access;
  /** Null with full access. */
  token: ITokenRef | null;
  /** Contents path of the notebook now; null if the target is none. */
  path: string | null;
  record_people: RecordPeople;
  kernel: ISessionKernel | null;
  executions: number;
  opened_at: string;
  last_activity_at: string;
  closed_at: string | null;
  chain: IChain;
  approval: ApprovalMode;
  /** Until when all that it asks for runs without asking. */
  approved_until: string | null;
  /** How many executions ask for approval. */
  asking: number;
  /** How many have ended about which no person has said anything. */
  unreviewed: number;
  /** The last about the whole session. */
  review: IReview | null;
}

/** What was left out of an execution's outputs, exactly. */
export interface IOmitted {
  bytes: number;
  lines: number;
  outputs: number;
}

/** The kernel in which an execution ran. */
export interface IExecutionKernel {
  id: string;
  name: string;
  incarnation: number;
  restarted: boolean;
  reason: string | null;
}

/** Behind whom an execution waits for its turn. */
export interface IWaitingFor {
  who: 'agent' | 'person' | 'kernel' | 'approval' | 'pause';
  agent: string | null;
  execution_id: string | null;
  since: string | null;
}

/** What code asks for while it runs. */
export interface IInput {
  /** Written by the code. */
  prompt: string;
  /** Whether it is not to be shown as it is typed; it is not recorded then. */
  password: boolean;
  asked_at: string;
}

/** What of an execution's outputs is in a notebook. */
export type PlacedOutputs = 'inert' | 'held' | 'accepted' | 'discarded';

/** What became of an execution's cell in a notebook. */
export interface IDocument {
  path: string;
  cell_id: string | null;
  via: 'collaboration' | 'tab' | 'contents' | null;
  status: 'writing' | 'written' | 'not_written' | 'discarded';
  outputs: PlacedOutputs;
  reason: string | null;
}

/** What became of an execution's asking for approval. */
export interface IApproval {
  status: 'asked' | 'approved' | 'rejected' | 'expired' | 'withdrawn';
  asked_at: string;
  expires_at: string;
  kernel_id: string | null;
  incarnation: number;
  /** The source that it is a new version of. */
  before: string | null;
  decided_at: string | null;
  decided_by: string | null;
  /** Why it was rejected. */
  reason: string | null;
  /** What the agent asked for, if a person changed it before approving. */
  asked_source: string | null;
}

/** A variable that an execution made, changed or removed. */
export interface IVariableChange {
  name: string;
  change: 'added' | 'changed' | 'removed';
  type: string | null;
  shape: number[] | null;
  length: number | null;
  preview: string | null;
}

/** A file that was written while an execution ran. */
export interface IFileChange {
  /** Relative to the folder in which the kernel works. */
  path: string;
  bytes: number;
  modified_at: string;
  /** Where it can be read while the session is open; null if it cannot. */
  url?: string | null;
}

/** What an execution changed besides its outputs. */
export interface IChanges {
  variables: IVariableChange[];
  more_variables: number;
  files: IFileChange[];
  more_files: number;
}

/** An image among an execution's outputs. */
export interface IImage {
  mimetype: string;
  width: number | null;
  height: number | null;
  bytes: number;
  /** Path on the server; null until the execution has finished. */
  url: string | null;
  output: number;
}

/** A large output, left out where it was not asked for. */
export interface ILeftOut {
  index: number;
  bytes: number;
  mimetypes: string[];
}

/** One source, run once. */
export interface IExecution {
  id: string;
  session_id: string;
  seq: number;
  init: boolean;
  status: Status;
  reason: string | null;
  source: string;
  execution_count: number | null;
  cell: { outputs: nbformat.IOutput[]; metadata?: PartialJSONObject };
  kernel: IExecutionKernel | null;
  /** What the program says of itself. */
  agent: IAgent;
  username: string;
  /** Null with a person's own credential. */
  token: ITokenRef | null;
  accepted_at: string;
  started_at: string | null;
  finished_at: string | null;
  duration: number | null;
  outputs_complete: boolean;
  omitted: IOmitted;
  interrupt_ignored: boolean;
  waiting_for: IWaitingFor | null;
  /** What its code asks for; null if it does not. */
  input?: IInput | null;
  /** Null if the session's target is not a notebook. */
  document: IDocument | null;
  images: IImage[];
  source_sha256: string;
  approval: IApproval | null;
  revises: string | null;
  review: IReview | null;
  changes: IChanges | null;
  left_out: ILeftOut[];
}

/** What a notebook's cell says of the execution that it shows. */
export interface ICellRecord {
  session_id: string;
  execution_id: string;
  /** Its number in the session; null if the cell does not say. */
  seq: number | null;
  agent: IAgent;
  username: string;
  status: Status;
  reason: string | null;
  accepted_at: string;
  started_at: string | null;
  finished_at: string | null;
  source_sha256: string;
  /** Of the agent's execution; a cell with another was run again since. */
  execution_count: number | null;
  outputs: PlacedOutputs;
  /** Mime types of what is held back. */
  held: readonly string[];
  /** The cell's id, if the notebook's format has none of its own. */
  cell_id: string | null;
}

/** Sessions, the newest first. */
export interface ISessionList {
  sessions: IAgentSession[];
  next_after: string | null;
}

/** A session's executions in order. */
export interface IExecutionList {
  executions: IExecution[];
  next_after: number | null;
}

/** A range of an execution's whole text. */
export interface ITextRange {
  text: string;
  offset: number;
  next_offset: number | null;
  total_bytes: number;
  omitted_bytes: number;
}

/** A step of a running execution's outputs. */
export interface IOutputChange {
  index: number;
  output?: nbformat.IOutput;
  append?: string;
  truncate?: true;
}

/** An execution's new status. */
export interface IStatusChange {
  status: Status;
  execution_count: number | null;
  started_at: string | null;
  waiting_for?: IWaitingFor | null;
  input?: IInput | null;
}

/** What an execution's stream tells. */
export type StreamEvent =
  | { kind: 'execution'; execution: IExecution; finished: boolean }
  | { kind: 'status'; change: IStatusChange }
  | { kind: 'output'; change: IOutputChange };

/** Something changed in an agent session: ids and statuses only. */
export interface IActivityEvent {
  serial: number;
  action:
    | 'opened'
    | 'closed'
    | 'kernel'
    | 'execution'
    | 'notebook'
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

/** An entry of a journal that is not part of an execution's cell. */
export interface IJournalEvent {
  n: number;
  /** As the record names it: `kernel_started`, `interrupted`, … */
  type: string;
  at: string;
  /** Null for the server. */
  by: string | null;
  /** The last execution accepted before it; 0 if none was. */
  after_seq: number;
  execution_id: string | null;
  text: string | null;
}

/** Entries between cells, in order. */
export interface IJournalEventList {
  events: IJournalEvent[];
  next_after: number | null;
}

/** An image of the history, and the execution that it came of. */
export interface IRecordedImage {
  execution_id: string;
  session_id: string;
  seq: number;
  agent: string;
  title: string | null;
  accepted_at: string;
  output: number;
  mimetype: string;
  width: number | null;
  height: number | null;
  bytes: number;
  url: string;
}

/** Images: a session's in order, else the newest first. */
export interface IImageList {
  images: IRecordedImage[];
  next_after: string | null;
}

/** An execution that matches a search. */
export interface ISearchHit {
  execution_id: string;
  session_id: string;
  seq: number;
  status: Status;
  agent: string;
  title: string | null;
  accepted_at: string;
  images: number;
  /** The source's first 500 characters. */
  source: string;
  /** Matches stand between U+2068 and U+2069. */
  snippet: string;
}

/** Executions that match, the newest first. */
export interface ISearchResults {
  hits: ISearchHit[];
  next_after: string | null;
}

/** What agents must ask for, by the kind of their target. */
export interface IApprovalPolicy {
  scratch: ApprovalMode;
  notebook: ApprovalMode;
  kernel: ApprovalMode;
  /** For which the server's configuration decides. */
  forced: ITarget['kind'][];
}

/** What asks for approval now, and what has to. */
export interface IApprovalList {
  executions: IExecution[];
  policy: IApprovalPolicy;
  paused: { by: string; at: string } | null;
  /** Whether the server asks for its passphrase before a person decides. */
  needs_passphrase: boolean;
}
