/** Values and a server for tests; the server keeps our own interface. */
import { Signal } from '@lumino/signaling';
import { ApiError } from '../api/errors';
import { ACTIVITY_SCHEMA_ID, isFinal } from '../tokens';
import type {
  IDecisionDetails,
  EditDecision,
  IAgentExecApi,
  IAgentSession,
  IApproval,
  IApprovalList,
  ICheckpointList,
  IPreview,
  GrantSpan,
  IExecution,
  IExecutionList,
  IExecutionRange,
  IJournalEvent,
  IJournalEventList,
  IKernelRun,
  IKernelRunList,
  IProposal,
  IProposalList,
  IRoundUndone,
  IProposedEdit,
  IReview,
  ISearchHit,
  ISearchResults,
  ISessionList,
  ITarget,
  ITextRange
} from '../tokens';

/** An approval that is asked for. */
export function approval(given: Partial<IApproval> = {}): IApproval {
  return {
    status: 'asked',
    asked_at: '2026-01-02T03:04:05.000Z',
    expires_at: '2026-01-02T03:04:05.000Z',
    kernel_id: 'k',
    incarnation: 1,
    before: null,
    decided_by: null,
    asked_source: null,
    edits_cell: false,
    also: [],
    ...given
  };
}

/** An execution that has finished well, but for what is given. */
export function execution(given: Partial<IExecution> = {}): IExecution {
  const seq = given.seq ?? 1;
  return {
    id: `x_${seq}`,
    session_id: 's_1',
    seq,
    init: false,
    trial: false,
    status: 'ok',
    reason: null,
    source: '1 + 1',
    execution_count: seq,
    cell: { outputs: [] },
    kernel: null,
    agent: { name: 'analyst', version: null, model: null },
    username: 'ada',
    token: null,
    accepted_at: '2026-01-02T03:04:05.000Z',
    started_at: '2026-01-02T03:04:05.000Z',
    finished_at: '2026-01-02T03:04:06.000Z',
    input: null,
    outputs_complete: true,
    omitted: { bytes: 0, lines: 0, outputs: 0, unknown: false },
    interrupt_ignored: false,
    waiting_for: null,
    document: null,
    images: [],
    source_sha256: `sha-${seq}`,
    approval: null,
    claim: null,
    review: null,
    changes: null,
    left_out: [],
    lookalikes: {},
    undone_by: null,
    ...given
  };
}

/** What an agent proposed at once. */
export function proposal(edits: IProposedEdit[]): IProposal {
  return {
    id: 'p_1',
    session_id: 's_1',
    path: 'a.ipynb',
    agent: { name: 'analyst', version: null, model: null },
    username: 'ada',
    purpose: 'To load the new file.',
    edits
  };
}

/** A proposed edit that fits, but for what is given. */
export function proposedEdit(
  given: Partial<IProposedEdit> & Pick<IProposedEdit, 'id' | 'kind'>
): IProposedEdit {
  return {
    cell_id: given.id,
    moved: given.kind === 'move',
    before: null,
    after: null,
    current: given.before ?? null,
    result: given.after ?? null,
    index: 0,
    follows: null,
    status: 'open',
    fits: true,
    reason: null,
    decided_by: null,
    edited: false,
    lookalikes: {},
    ...given
  };
}

function outcome(
  { fits }: IProposedEdit,
  what: EditDecision
): IProposedEdit['status'] {
  return what === 'undo'
    ? fits
      ? 'open'
      : 'kept'
    : what === 'reject'
      ? 'rejected'
      : fits
        ? 'kept'
        : 'obsolete';
}

/** A target of a kind. */
export function target(kind: 'scratch' | 'notebook' | 'kernel'): ITarget {
  switch (kind) {
    case 'scratch':
      return {
        kind,
        kernel_name: 'python3'
      };
    case 'notebook':
      return { kind, path: 'a.ipynb', kernel_name: null };
    case 'kernel':
      return { kind, kernel_id: 'k' };
  }
}

/** A session that is open and idle, but for what is given. */
export function session(given: Partial<IAgentSession> = {}): IAgentSession {
  return {
    id: 's_1',
    agent: { name: 'analyst', version: null, model: null },
    target: target('scratch'),
    title: 'Sales',
    status: 'open',
    close_reason: null,
    username: 'ada',
    token: null,
    path: null,
    record_people: 'off',
    kernel: {
      id: 'k',
      name: 'python3',
      execution_state: 'idle'
    },
    executions: 0,
    opened_at: '2026-01-02T03:04:05.000Z',
    last_activity_at: '2026-01-02T03:04:05.000Z',
    chain: { head: 'h', length: 1 },
    approval: 'none',
    grant: null,
    proposed: 0,
    behind: 0,
    unreviewed: 0,
    ...given
  };
}

/** A match of a search, but for what is given. */
export function hit(given: Partial<ISearchHit> = {}): ISearchHit {
  const seq = given.seq ?? 1;
  return {
    execution_id: `x_${seq}`,
    session_id: 's_1',
    seq,
    execution_count: seq,
    status: 'ok',
    agent: 'analyst',
    title: 'Sales',
    accepted_at: '2026-01-02T03:04:05.000Z',
    images: 0,
    source: 'sales.mean()',
    snippet: 'the \u2068mean\u2069 of all',
    ...given
  };
}

/** A stdout output. */
export function stdout(text: string) {
  return { output_type: 'stream' as const, name: 'stdout' as const, text };
}

/** A stream that tells what the test feeds it. */
export class FakeStream extends EventTarget {
  tell(kind: string, told: object): void {
    if (this.readyState !== 2) {
      const data = JSON.stringify(told);
      this.dispatchEvent(new MessageEvent(kind, { data }));
    }
  }

  /** The connection breaks, for good if the server refuses another. */
  break(isRefused = false): void {
    this.readyState = isRefused ? 2 : 0;
    this.onerror?.();
  }

  close(): void {
    this.readyState = 2;
  }

  onerror: (() => void) | null = null;
  readyState = 1;
}

/** A server that answers from memory and notes what it was asked. */
/** What a trial showed. */
export function preview(given: Partial<IPreview> = {}): IPreview {
  return {
    status: 'ok',
    reason: null,
    outputs: [],
    omitted: { bytes: 0, lines: 0, outputs: 0, unknown: false },
    error: null,
    changes: null,
    seal: null,
    ...given
  };
}

export class FakeServer implements IAgentExecApi {
  readonly clockOffset = 0;
  readonly calls: string[] = [];
  readonly streams = new Map<string, FakeStream>();
  readonly events = new Signal<this, Readonly<Record<string, unknown>>>(this);
  sessions: IAgentSession[] = [];
  executions: IExecution[] = [];
  journal: IJournalEvent[] = [];
  hits: ISearchHit[] = [];
  approvals: IApprovalList = {
    executions: [],
    pending: [],
    sessions: [],
    proposing: [],
    paused: null,
    sinks: [],
    broken: null
  };
  /** What trials of code that asks show. */
  preview: IPreview = preview({ status: 'none' });
  proposals: IProposal[] = [];
  /** What becomes of changes that are undone, or made again. */
  round: IRoundUndone = {
    path: 'a.ipynb',
    changes: 0,
    without_outputs: [],
    left: []
  };
  /** The decisions about edits: what, and which. */
  decided: [string, readonly string[], IDecisionDetails?][] = [];
  failure: Error | null = null;

  async listProposals(
    _path: string | null,
    sessionId?: string
  ): Promise<IProposalList> {
    if (sessionId !== undefined) {
      return { proposals: this.proposals }; // those that are decided too
    }
    const proposals = this.proposals.map(proposal => ({
      ...proposal,
      edits: proposal.edits.filter(({ status }) => status === 'open')
    }));
    return { proposals: proposals.filter(({ edits }) => edits.length > 0) };
  }

  /** Decide, and answer with what became of each. */
  async decideEdits(
    what: EditDecision,
    _sessionId: string,
    ids: readonly string[],
    more: IDecisionDetails = {}
  ): Promise<IProposalList> {
    this.decided.push(
      Object.values(more).some(each => each !== null)
        ? [what, ids, more]
        : [what, ids]
    );
    this.proposals = this.proposals.map(proposal => ({
      ...proposal,
      edits: proposal.edits.map(edit =>
        ids.includes(edit.id) ? { ...edit, status: outcome(edit, what) } : edit
      )
    }));
    return { proposals: this.proposals };
  }

  async changeRound(
    what: 'undo' | 'redo',
    sessionId: string,
    since: string | null = null
  ): Promise<IRoundUndone> {
    this.calls.push(`${what} round of ${sessionId} since ${since}`);
    return this.round;
  }

  /** Emit an activity event. */
  emit(serial: number, given: Record<string, unknown> = {}): void {
    this.events.emit({
      schema_id: ACTIVITY_SCHEMA_ID,
      serial,
      action: 'execution',
      session_id: 's_1',
      length: 1,
      ...given
    });
  }

  /** Put an execution in the place of the one with its number. */
  put(...executions: IExecution[]): void {
    for (const each of executions) {
      this.executions = this.executions
        .filter(({ seq }) => seq !== each.seq)
        .concat(each)
        .sort((a, b) => a.seq - b.seq);
    }
  }

  async listSessions(
    after: string | null,
    limit: number,
    { status }: { status?: IAgentSession['status'] } = {}
  ): Promise<ISessionList> {
    this._asked(`${status ? `${status} sessions` : 'sessions'} after ${after}`);
    const all = this.sessions.filter(
      each => status === undefined || each.status === status
    );
    const at = all.findIndex(({ id }) => id === after) + 1;
    const sessions = all.slice(at, at + limit);
    const more = at + limit < all.length;
    return {
      sessions,
      next_after: more ? sessions[sessions.length - 1].id : null
    };
  }

  async getSession(id: string): Promise<IAgentSession> {
    this._asked(`session ${id}`);
    const found = this.sessions.find(each => each.id === id);
    return found ?? this._missing(id);
  }

  async listExecutions(
    id: string,
    { after, limit }: IExecutionRange
  ): Promise<IExecutionList> {
    this._asked(`${id} after ${after}`);
    const later = this.executions.filter(({ seq }) => seq > after);
    const page = later.slice(0, limit);
    return {
      executions: page,
      next_after: later.length > limit ? page[page.length - 1].seq : null
    };
  }

  async getExecution(id: string): Promise<IExecution> {
    this._asked(`execution ${id}`);
    return this._executionNamed(id);
  }

  async getText(id: string): Promise<ITextRange> {
    return this._missing(id);
  }

  async getNotebook(sessionId: string): Promise<Blob> {
    return this._missing(sessionId);
  }

  async shareNotebook(sessionId: string): Promise<Blob> {
    return this._missing(sessionId);
  }

  notebookURL(sessionId: string): string {
    return `notebook of ${sessionId}`;
  }

  blobURL(path: string): string {
    return path;
  }

  async interrupt(sessionId: string): Promise<void> {
    this._asked(`interrupt ${sessionId}`);
  }

  async closeSession(id: string): Promise<IAgentSession> {
    this._asked(`close ${id}`);
    return session({ id, status: 'closed' });
  }

  async listEvents(
    id: string,
    after: number | null,
    limit: number
  ): Promise<IJournalEventList> {
    this._asked(`events of ${id} after ${after}`);
    const later = this.journal.filter(({ n }) => n > (after ?? -1));
    const events = later.slice(0, limit);
    const more = later.length > limit;
    return { events, next_after: more ? events[limit - 1].n : null };
  }

  async search(q: string, limit: number): Promise<ISearchResults> {
    this._asked(`search ${q}`);
    return { hits: this.hits.slice(0, limit), next_after: null };
  }

  async getApprovals(): Promise<IApprovalList> {
    this._asked('approvals');
    const pending = this.executions.filter(
      ({ status }) => !isFinal(status) && status !== 'awaiting_approval'
    );
    const sessions = this.sessions.filter(({ status }) => status === 'open');
    return { ...this.approvals, pending, sessions };
  }

  async approve(
    id: string,
    sha256: string,
    source?: string,
    span?: GrantSpan | 'once'
  ): Promise<IExecution> {
    const edited = source === undefined ? '' : ` as ${source}`;
    const granted = span === undefined ? '' : ` until ${span}`;
    this._asked(`approve ${id} ${sha256}${edited}${granted}`);
    return this._executionNamed(id);
  }

  async getPreview(): Promise<IPreview> {
    return this.preview;
  }

  async reject(id: string, reason: string | null): Promise<IExecution> {
    this._asked(`reject ${id}: ${reason}`);
    return this._executionNamed(id);
  }

  async giveInput(
    id: string,
    value: string,
    askedAt: string
  ): Promise<IExecution> {
    this._asked(`input ${id} ${askedAt}: ${value}`);
    return this._executionNamed(id);
  }

  async acceptOutputs(id: string): Promise<IExecution> {
    this._asked(`accept ${id}`);
    return this._executionNamed(id);
  }

  async review(
    id: string,
    { comment, verdict }: Pick<IReview, 'verdict' | 'comment'>
  ): Promise<IExecution> {
    this._asked(`review ${id}: ${verdict} ${comment}`);
    return this._executionNamed(id);
  }

  /** What is known of a kernel's checkpoints. */
  checkpoints: ICheckpointList = {
    enabled: false,
    reason: null,
    checkpoints: [],
    rescued: null,
    not_undone: ['Files.']
  };

  async getCheckpoints(): Promise<ICheckpointList> {
    return this.checkpoints;
  }

  /** What ran in the kernel. */
  runs: IKernelRun[] = [];

  async listKernelRuns(): Promise<IKernelRunList> {
    return { runs: this.runs };
  }

  async keepCheckpoints(id: string): Promise<ICheckpointList> {
    this._asked(`keep checkpoints of ${id}`);
    return this.checkpoints;
  }

  async undo(id: string): Promise<unknown> {
    this._asked(`undo ${id}`);
    return null;
  }

  async withdrawGrant(id: string): Promise<IAgentSession> {
    this._asked(`withdraw ${id}`);
    return this.sessions.find(each => each.id === id) ?? this._missing(id);
  }

  async setPaused(paused: boolean): Promise<IApprovalList> {
    this._asked(paused ? 'pause' : 'resume');
    const by = { by: 'ada', at: '2026-01-02T03:04:05.000Z' };
    this.approvals = { ...this.approvals, paused: paused ? by : null };
    return this.approvals;
  }

  async unlock(passphrase: string): Promise<void> {
    this._asked(`unlock ${passphrase}`);
  }

  askPassphrase: (() => Promise<boolean>) | null = null;

  follow(id: string): EventSource {
    this._asked(`follow ${id}`);
    const stream = new FakeStream();
    this.streams.set(id, stream);
    return stream as unknown as EventSource;
  }

  /** Forget what was asked so far. */
  forget(): void {
    this.calls.length = 0;
  }

  private _asked(what: string): void {
    this.calls.push(what);
    if (this.failure) {
      throw this.failure;
    }
  }

  /** Wait until the request is given up, if requests are held. */
  private _executionNamed(id: string): IExecution {
    const found = this.executions.find(each => each.id === id);
    return found ?? this._missing(id);
  }

  private _missing(id: string): never {
    throw new ApiError('refused', `There is no ${id}.`, 404, 'not_found');
  }
}

/** Let everything that waits for a promise or a timer up to `ms` happen. */
export async function settle(ms = 1000): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms);
}
