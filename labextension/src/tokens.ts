/**
 * The words that all layers share: what crosses the wire, and what other
 * plugins may ask for.
 */
import type * as nbformat from '@jupyterlab/nbformat';
import type { CommandRegistry } from '@lumino/commands';
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type {
  IActivityEvent,
  IAgentSession,
  IAgentToken,
  IApprovalList,
  IApprovalPolicy,
  ICellRecord,
  IExecution,
  IExecutionList,
  IImageList,
  IIndexing,
  IJournalEvent,
  IJournalEventList,
  IMintedToken,
  IMintToken,
  IReview,
  ISearchResults,
  ISessionList,
  ITarget,
  ITextRange,
  ITokenList,
  Status,
  StreamEvent,
  Verdict
} from './wire';

export * from './wire';

/** The domain of this extension's translations. */
export const TRANSLATION_DOMAIN = 'jupyter_agent_exec';

/** A part of a list of executions; the newest ones when neither is given. */
export interface IExecutionRange {
  /** Only those with a greater number. */
  after?: number;
  /** Only those with a smaller number, the nearest first. */
  before?: number;
  limit: number;
  /** Leave large outputs out. */
  brief?: boolean;
  /** Answer with inert copies of outputs. */
  inert?: boolean;
}

/** Which sessions to list; all that is given must be true of them. */
export interface ISessionFilter {
  status?: IAgentSession['status'];
  agent?: string;
  target?: ITarget['kind'];
  /** Opened on this day or later, as 2026-01-31 or RFC 3339. */
  since?: string;
  until?: string;
  /** Only those with executions that nobody has reviewed. */
  unreviewed?: boolean;
}

/** What to search the history for; all that is given must be true. */
export interface ISearch {
  /** Words in source, output or error. */
  q?: string;
  agent?: string;
  target?: ITarget['kind'];
  status?: Status;
  session_id?: string;
  since?: string;
  until?: string;
  has_image?: boolean;
  review?: Verdict | 'none';
}

/** The server, as the models see it. Failures reject with an `ApiError`. */
export interface IAgentExecApi {
  /** Milliseconds to add to this computer's clock to get the server's. */
  readonly clockOffset: number;
  listSessions(
    after: string | null,
    limit: number,
    filter?: ISessionFilter
  ): Promise<ISessionList>;
  getSession(id: string): Promise<IAgentSession>;
  listExecutions(
    id: string,
    range: IExecutionRange,
    signal?: AbortSignal
  ): Promise<IExecutionList>;
  /** @param inert - Whether to answer with an inert copy of its outputs. */
  getExecution(id: string, inert?: boolean): Promise<IExecution>;
  getText(id: string, offset: number, limit: number): Promise<ITextRange>;
  getNotebook(sessionId: string): Promise<Blob>;
  /** Read what the server gave the address of, as an image's. */
  getBlob(url: string, signal?: AbortSignal): Promise<Blob>;
  interrupt(sessionId: string): Promise<void>;
  /** Bring an execution's original outputs into its notebook. */
  acceptOutputs(executionId: string): Promise<IExecution>;
  /** Take an execution's outputs out of its notebook. */
  discardOutputs(executionId: string): Promise<IExecution>;
  /** Accept what is held back of all that ran in a session. */
  acceptAllOutputs(sessionId: string): Promise<IExecutionList>;
  /** Discard all outputs of a session that nobody has decided on. */
  discardAllOutputs(sessionId: string): Promise<IExecutionList>;
  /** Take back what was decided about an execution's outputs. */
  restoreOutputs(executionId: string): Promise<IExecution>;
  /** Take an execution's cell out of its notebook. */
  discardCell(executionId: string): Promise<IExecution>;
  /** Put a cell that was discarded back to where it was. */
  restoreCell(executionId: string): Promise<IExecution>;
  /** Take all cells of a session out of its notebook. */
  discardAllCells(sessionId: string): Promise<IExecutionList>;
  /** Entries between a session's cells, after a position in its journal. */
  listEvents(
    id: string,
    after: number | null,
    limit: number
  ): Promise<IJournalEventList>;
  listImages(
    search: ISearch,
    after: string | null,
    limit: number
  ): Promise<IImageList>;
  search(
    search: ISearch,
    after: string | null,
    limit: number
  ): Promise<ISearchResults>;
  getApprovals(): Promise<IApprovalList>;
  /**
   * Let an execution run.
   *
   * @param sha256 - Digest of the source that was looked at.
   * @param source - What to run instead.
   */
  approve(id: string, sha256: string, source?: string): Promise<IExecution>;
  reject(id: string, reason: string | null): Promise<IExecution>;
  /**
   * Answer what the code of an execution asks for.
   *
   * @param askedAt - Of the input that is answered.
   */
  giveInput(id: string, value: string, askedAt: string): Promise<IExecution>;
  /** Let all that a session asks for run for so long; 0 ends that. */
  grantApproval(sessionId: string, minutes: number): Promise<IAgentSession>;
  setPolicy(
    policy: Partial<Omit<IApprovalPolicy, 'forced'>>
  ): Promise<IApprovalList>;
  setPaused(paused: boolean): Promise<IApprovalList>;
  reviewExecution(
    id: string,
    verdict: Verdict | null,
    comment: string | null
  ): Promise<IExecution>;
  reviewSession(
    id: string,
    verdict: Verdict | null,
    comment: string | null
  ): Promise<IAgentSession>;
  listTokens(): Promise<ITokenList>;
  /** Give an agent a token; its secret is told this once. */
  mintToken(asked: IMintToken): Promise<IMintedToken>;
  revokeToken(id: string): Promise<IAgentToken>;
  /** Show the server's passphrase; decisions are taken for some minutes then. */
  unlock(passphrase: string): Promise<void>;
  /**
   * Asks the person for the passphrase when a decision needs it.
   *
   * False if they do not give it: the decision is refused then.
   */
  askPassphrase: (() => Promise<boolean>) | null;
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
  /** Which of the outputs that were left out are there in whole. */
  readonly opened: ReadonlySet<number>;
  /** Fetch an output that was left out. */
  openOutput(index: number, api: IAgentExecApi): Promise<void>;
  /** Forget what was fetched of those left out. */
  closeOutputs(): void;
}

/** The chosen session: its cells by number, of which some are known. */
export interface ISessionModel extends IDisposable {
  readonly id: string;
  readonly session: IAgentSession | null;
  readonly state: LoadState;
  /** Those known, in order: near what is looked at, and all that still run. */
  readonly executions: readonly IExecutionModel[];
  /** The number of the last execution; 0 before any is known. */
  readonly last: number;
  /** The session itself, its state, or what is known of it changed. */
  readonly changed: ISignal<ISessionModel, void>;
  /** An execution that was pending has finished. */
  readonly finished: ISignal<ISessionModel, IExecution>;
  /** An execution by its number; null while it is not known. */
  at(seq: number): IExecutionModel | null;
  /** Whether there is no execution of this number, though there are later ones. */
  isAbsent(seq: number): boolean;
  /** Entries after an execution and before the next; 0 for the beginning. */
  eventsAfter(seq: number): readonly IJournalEvent[];
  /**
   * Tell what is looked at: that is fetched, and what is far from it forgotten.
   *
   * @param first - Number of the first.
   * @param last - Number of the last.
   * @param held - Numbers of others that must not be forgotten.
   */
  look(first: number, last: number, held?: readonly number[]): void;
  /** Look for an execution, however far back; it is then `revealed`. */
  reveal(executionId: string): void;
  /** An execution was looked for, and is now known. */
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
  /** How far the server has rebuilt its index; null if all is listed. */
  readonly indexing: IIndexing | null;
  readonly selected: ISessionModel | null;
  /** Whether somebody looks; nothing is fetched while nobody does. */
  isActive: boolean;
  /** Which sessions are listed; without a filter, all. */
  filter: ISessionFilter;
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

/** What asks for a person's decision now, and how agents are held. */
export interface IApprovalsModel extends IDisposable {
  /** What asks, the longest waiting first. */
  readonly asking: readonly IExecution[];
  /** Null until the server has told. */
  readonly policy: IApprovalPolicy | null;
  readonly paused: IApprovalList['paused'];
  /** Whether a decision takes the server's passphrase. */
  readonly needsPassphrase: boolean;
  readonly changed: ISignal<IApprovalsModel, void>;
  /** Something asks that this page did not know to ask. */
  readonly asked: ISignal<IApprovalsModel, IExecution>;
  /** The server was away and is back: what it told meanwhile was missed. */
  readonly reconnected: ISignal<IApprovalsModel, void>;
  /** What an execution asks; null if it does not. */
  get(executionId: string): IExecution | null;
  approve(execution: IExecution, source?: string): Promise<void>;
  reject(execution: IExecution, reason: string | null): Promise<void>;
  /** Let all that a session asks for run for so long; 0 ends that. */
  grant(sessionId: string, minutes: number): Promise<void>;
  setPaused(paused: boolean): Promise<void>;
  setPolicy(policy: Partial<Omit<IApprovalPolicy, 'forced'>>): Promise<void>;
  /** Ask for a look at the server. */
  refresh(): void;
}

/** What asks for a decision, for plugins that show it. */
export const IApprovalsModel = new Token<IApprovalsModel>(
  'jupyter-agent-exec:IApprovalsModel',
  'What agents ask a person to approve, and whether they are paused.'
);

/** What of an agent's executions has not ended. */
export interface IPendingExecution {
  readonly id: string;
  /** Its number in the session; null while nobody has said. */
  readonly seq: number | null;
  readonly status: Status;
}

/** An agent session in which something runs, waits or asks. */
export interface IAgentAtWork {
  readonly session: IAgentSession;
  /** What asks comes first, then what runs, then what waits. */
  readonly pending: readonly IPendingExecution[];
}

/** What became of stopping an agent. */
export interface IStopped {
  /** What was stopped, as it is now; null if nothing ran. */
  readonly execution: IExecution | null;
  readonly session: IAgentSession;
}

/** The agents at work on this server, in whichever kernels. */
export interface IAgentsAtWork extends IDisposable {
  /** Those with a question first, then in the order of their sessions. */
  readonly agents: readonly IAgentAtWork[];
  readonly changed: ISignal<IAgentsAtWork, void>;
  /** An execution has ended, or was said once more to have. */
  readonly ended: ISignal<IAgentsAtWork, IActivityEvent>;
  get(sessionId: string): IAgentAtWork | null;
  /** Interrupt what a session runs, and see whether its kernel is free. */
  stop(sessionId: string): Promise<IStopped>;
  /** Whether this page has stopped an execution. */
  hasStopped(executionId: string): boolean;
  /** Ask for a look at the server. */
  refresh(): void;
}

/** The agents at work, for plugins that show or stop them. */
export const IAgentsAtWork = new Token<IAgentsAtWork>(
  'jupyter-agent-exec:IAgentsAtWork',
  'The agents at work on this server, and what they do.'
);

/** What people think of the executions that notebooks show. */
export interface IReviews extends IDisposable {
  /** What was said of an execution; null if nothing, or not known yet. */
  get(executionId: string): IReview | null;
  /** Have what is said of a cell's execution looked up, and kept up to date. */
  look(record: ICellRecord): void;
  readonly changed: ISignal<IReviews, void>;
}

/** What people think of agents' cells, for plugins that show it. */
export const IReviews = new Token<IReviews>(
  'jupyter-agent-exec:IReviews',
  'What people think of the executions that notebooks show.'
);

/** The commands of this extension. */
export namespace CommandIDs {
  export const approve = 'agent-exec:approve';
  export const reject = 'agent-exec:reject';
  export const grant = 'agent-exec:grant';
  export const pause = 'agent-exec:pause';
  export const resume = 'agent-exec:resume';
  export const acceptAllOutputs = 'agent-exec:accept-all-outputs';
  export const acceptOutputs = 'agent-exec:accept-outputs';
  export const comment = 'agent-exec:comment';
  export const discardAllCells = 'agent-exec:discard-all-cells';
  export const discardAllOutputs = 'agent-exec:discard-all-outputs';
  export const discardCell = 'agent-exec:discard-cell';
  export const discardOutputs = 'agent-exec:discard-outputs';
  export const restoreCell = 'agent-exec:restore-cell';
  export const restoreOutputs = 'agent-exec:restore-outputs';
  export const review = 'agent-exec:review';
  export const goToCell = 'agent-exec:go-to-cell';
  export const openPanel = 'agent-exec:open-panel';
  export const refresh = 'agent-exec:refresh';
  export const search = 'agent-exec:search';
  export const interrupt = 'agent-exec:interrupt';
  export const newToken = 'agent-exec:new-token';
  export const tokens = 'agent-exec:tokens';
  export const showAtWork = 'agent-exec:show-at-work';
  export const exportNotebook = 'agent-exec:export';
  export const openNotebook = 'agent-exec:open-notebook';
  export const openDocument = 'agent-exec:open-document';
  export const moveInDocument = 'agent-exec:move-in-document';
  export const insertCells = 'agent-exec:insert-cells';
  export const copySource = 'agent-exec:copy-source';
  export const runAgain = 'agent-exec:run-again';
  export const openText = 'agent-exec:open-text';
}

/** Runs a command; what the widgets need of the application. */
export type Execute = CommandRegistry['execute'];
