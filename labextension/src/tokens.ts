/**
 * The words that all layers share: what crosses the wire, and what other
 * plugins may ask for. Wire interfaces keep the server's snake_case names.
 */
import type * as nbformat from '@jupyterlab/nbformat';
import type { CommandRegistry } from '@lumino/commands';
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';

/** Where the server's routes live, below the base URL. */
export const API_NAMESPACE = 'api/agent-exec';

/** The events that say what changed. */
export const ACTIVITY_SCHEMA_ID =
  'https://schema.jupyter.org/jupyter_agent_exec/activity/v1';

/** The domain of this extension's translations. */
export const TRANSLATION_DOMAIN = 'jupyter_agent_exec';

/** Where an execution stands. */
export type Status =
  | 'awaiting_approval'
  | 'queued'
  | 'running'
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
  'running'
]);

/** Whether an execution with this status will change no more. */
export function isFinal(status: Status): boolean {
  return !PENDING.has(status);
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

/** One agent's work with one kernel. */
export interface IAgentSession {
  id: string;
  agent: IAgent;
  target: ITarget;
  title: string | null;
  status: 'open' | 'closed';
  close_reason: string | null;
  username: string;
  /** Contents path of the notebook now; null if the target is none. */
  path: string | null;
  record_people: RecordPeople;
  kernel: ISessionKernel | null;
  executions: number;
  opened_at: string;
  last_activity_at: string;
  closed_at: string | null;
  chain: IChain;
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
  who: 'agent' | 'person' | 'kernel';
  agent: string | null;
  execution_id: string | null;
  since: string | null;
}

/** What of an execution's outputs is in a notebook. */
export type PlacedOutputs = 'inert' | 'held' | 'accepted' | 'discarded';

/** What became of an execution's cell in a notebook. */
export interface IDocument {
  path: string;
  cell_id: string | null;
  via: 'collaboration' | 'tab' | 'contents' | null;
  status: 'writing' | 'written' | 'not_written';
  outputs: PlacedOutputs;
  reason: string | null;
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
  cell: { outputs: nbformat.IOutput[] };
  kernel: IExecutionKernel | null;
  agent: IAgent;
  username: string;
  accepted_at: string;
  started_at: string | null;
  finished_at: string | null;
  duration: number | null;
  outputs_complete: boolean;
  omitted: IOmitted;
  interrupt_ignored: boolean;
  waiting_for: IWaitingFor | null;
  /** Null if the session's target is not a notebook. */
  document: IDocument | null;
}

/** What a notebook's cell says of the execution that it shows. */
export interface ICellRecord {
  session_id: string;
  execution_id: string;
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
}

/** What an execution's stream tells. */
export type StreamEvent =
  | { kind: 'execution'; execution: IExecution; finished: boolean }
  | { kind: 'status'; change: IStatusChange }
  | { kind: 'output'; change: IOutputChange };

/** Something changed in an agent session: ids and statuses only. */
export interface IActivityEvent {
  serial: number;
  action: 'opened' | 'closed' | 'kernel' | 'execution';
  session_id: string;
  length: number;
  execution_id?: string;
  seq?: number;
  status?: string;
}

/** A part of a list of executions; the newest ones when neither is given. */
export interface IExecutionRange {
  /** Only those with a greater number. */
  after?: number;
  /** Only those with a smaller number, the nearest first. */
  before?: number;
  limit: number;
}

/** The server, as the models see it. Failures reject with an `ApiError`. */
export interface IAgentExecApi {
  /** Milliseconds to add to this computer's clock to get the server's. */
  readonly clockOffset: number;
  listSessions(
    after: string | null,
    limit: number,
    status?: IAgentSession['status']
  ): Promise<ISessionList>;
  getSession(id: string): Promise<IAgentSession>;
  listExecutions(id: string, range: IExecutionRange): Promise<IExecutionList>;
  getExecution(id: string): Promise<IExecution>;
  getText(id: string, offset: number, limit: number): Promise<ITextRange>;
  getNotebook(sessionId: string): Promise<Blob>;
  interrupt(sessionId: string): Promise<void>;
  /** Bring an execution's original outputs into its notebook. */
  acceptOutputs(executionId: string): Promise<IExecution>;
  /** Take an execution's outputs out of its notebook. */
  discardOutputs(executionId: string): Promise<IExecution>;
  /** Accept what is held back of all that ran in a session. */
  acceptAllOutputs(sessionId: string): Promise<void>;
  /** What happens to an execution, until it finishes or `signal` aborts. */
  follow(id: string, signal: AbortSignal): AsyncIterable<StreamEvent>;
}

/** Whether there is something to show, and if not, why. */
export type LoadState =
  | { phase: 'loading' }
  | { phase: 'ready' }
  | { phase: 'error'; error: unknown };

/** One execution as shown, with outputs that grow while it runs. */
export interface IExecutionModel extends IDisposable {
  readonly execution: IExecution;
  readonly outputs: readonly nbformat.IOutput[];
  readonly changed: ISignal<IExecutionModel, 'status' | 'outputs'>;
}

/** The chosen session: its newest cells, and earlier ones on demand. */
export interface ISessionModel extends IDisposable {
  readonly id: string;
  readonly session: IAgentSession | null;
  readonly state: LoadState;
  readonly executions: readonly IExecutionModel[];
  readonly hasEarlier: boolean;
  readonly loadingEarlier: boolean;
  /** Whether the newest are not shown, since somebody looks at others. */
  readonly hasLater: boolean;
  /** The session itself, its state, or its list of executions changed. */
  readonly changed: ISignal<ISessionModel, void>;
  /** An execution that was pending has finished. */
  readonly finished: ISignal<ISessionModel, IExecution>;
  loadEarlier(): Promise<void>;
  loadLater(): Promise<void>;
  /** Show the newest again. */
  showNewest(): void;
  /** Look for an execution, however far back; it is then `revealed`. */
  reveal(executionId: string): void;
  /** An execution was looked for, and is now among those shown. */
  readonly revealed: ISignal<ISessionModel, IExecutionModel>;
  /** Ask for a look at the server; with `all`, at all cells shown. */
  requestSync(all?: boolean): void;
}

/** What agents do on this server. */
export interface IActivityModel extends IDisposable {
  readonly api: IAgentExecApi;
  readonly sessions: readonly IAgentSession[];
  readonly state: LoadState;
  readonly hasMore: boolean;
  readonly selected: ISessionModel | null;
  /** Whether somebody looks; nothing is fetched while nobody does. */
  isActive: boolean;
  /** The list of sessions or its state changed. */
  readonly changed: ISignal<IActivityModel, void>;
  readonly selectedChanged: ISignal<IActivityModel, string | null>;
  /** Choose a session; `null` chooses none. */
  select(id: string | null): void;
  refresh(): Promise<void>;
  loadMore(): Promise<void>;
}

/** The model of agent activity, for plugins that show or control it. */
export const IActivityModel = new Token<IActivityModel>(
  'jupyter-agent-exec:IActivityModel',
  'What agents do on this server: their sessions and what they run.'
);

/** An agent that works in a kernel which is not its own. */
export interface IAttachedSession {
  readonly session: IAgentSession;
  /** What it runs, or what waits; null if it does nothing. */
  readonly current: IExecution | null;
}

/** The agents that work in people's kernels. */
export interface IAttachedSessions extends IDisposable {
  readonly sessions: readonly IAttachedSession[];
  readonly changed: ISignal<IAttachedSessions, void>;
  /** Whether the server has told which there are. */
  readonly isReady: boolean;
  /** Whether a notebook is open; nothing is fetched while none is. */
  isActive: boolean;
  /** The agents in a notebook, or in its kernel, the first attached first. */
  at(path: string, kernelId: string | null): readonly IAttachedSession[];
  /** An execution that waits or runs; null if it is none of these. */
  pending(executionId: string): IExecution | null;
  /** Ask for a look at the server. */
  refresh(): void;
}

/** The agents at work in people's kernels, for plugins that show them. */
export const IAttachedSessions = new Token<IAttachedSessions>(
  'jupyter-agent-exec:IAttachedSessions',
  'The agents that work in notebooks and other running kernels.'
);

/** The commands of this extension. */
export namespace CommandIDs {
  export const acceptAllOutputs = 'agent-exec:accept-all-outputs';
  export const acceptOutputs = 'agent-exec:accept-outputs';
  export const discardOutputs = 'agent-exec:discard-outputs';
  export const goToCell = 'agent-exec:go-to-cell';
  export const openPanel = 'agent-exec:open-panel';
  export const refresh = 'agent-exec:refresh';
  export const interrupt = 'agent-exec:interrupt';
  export const exportNotebook = 'agent-exec:export';
  export const openNotebook = 'agent-exec:open-notebook';
  export const openText = 'agent-exec:open-text';
}

/** Runs a command; what the widgets need of the application. */
export type Execute = CommandRegistry['execute'];
