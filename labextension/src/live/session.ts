/** A session that is shown: its executions, and what happened between them. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { PAGE } from '../api/client';
import type { IExecutionRange } from '../api/client';
import { isFinal } from '../wire';
import type {
  IActivityEvent,
  IAgentSession,
  IExecution,
  IExecutionList,
  IJournalEvent,
  IProposedEdit
} from '../wire';
import { Coalescer } from './coalescer';
import { ExecutionModel } from './execution';
import { Follower } from './follower';
import type { LiveModel } from './live';
import { Observable } from './observable';
import type { LoadState } from './observable';
import { SessionEvents } from './sessionevents';

/** Milliseconds between two looks at the server while much happens. */
const READ_INTERVAL_MS = 150;

/** Executions read first: more than a window shows. */
export const FIRST_PAGE = 50;

/** The types of entries about proposed edits. */
const EDITS = /^edits_/;

/** Keeps what is known of a session in step with the server. */
export class SessionModel extends Observable {
  constructor(
    readonly id: string,
    private readonly _live: LiveModel
  ) {
    super();
    const { api } = _live;
    this._events = new SessionEvents(id, api);
    this._follower = new Follower(api, () => this.requestSync());
    this._syncing = new Coalescer(() => this._sync(), READ_INTERVAL_MS);
    _live.heard.connect(this._onHeard, this);
    _live.missed.connect(() => this.requestSync(true), this);
    _live.changed.connect(this._onLive, this);
    this._session = this._listed;
  }

  get session(): IAgentSession | null {
    return this._session;
  }

  get state(): LoadState {
    return this._state;
  }

  /** Those known, in order: all up to the last of them. */
  get executions(): readonly ExecutionModel[] {
    return this._executions;
  }

  /** The edits of its notebook that its agent has proposed, and what became of them. */
  get edits(): readonly IProposedEdit[] {
    return this._edits;
  }

  /** The number of the last execution; 0 before any is known. */
  get last(): number {
    return this._executions[this._executions.length - 1]?.execution.seq ?? 0;
  }

  /** An execution that was pending has finished. */
  get finished(): ISignal<this, IExecution> {
    return this._finished;
  }

  override dispose(): void {
    this._syncing.dispose();
    this._follower.dispose();
    this._executions.forEach(each => each.dispose());
    super.dispose();
  }

  /** An execution by its id; null while it is not known. */
  find(id: string): ExecutionModel | null {
    return this._byId.get(id) ?? null;
  }

  /** Entries after an execution and before the next; 0 for the beginning. */
  eventsAfter(seq: number): readonly IJournalEvent[] {
    return this._events.after(seq);
  }

  /** What the server told of this session, while it is open. */
  private get _listed(): IAgentSession | null {
    return this._live.sessions.find(({ id }) => id === this.id) ?? null;
  }

  /** Take what is known of the session now, and look if something else happened. */
  private _onLive(): void {
    const { _listed: listed, _session: known } = this;
    const isBehind = listed
      ? listed.chain.length !== known?.chain.length
      : known?.status !== 'closed'; // it was closed, or is not there
    if (listed) {
      this._session = listed;
      this.emitChanged();
    }
    if (this._live.isReady && (isBehind || this._state.phase === 'error')) {
      this.requestSync();
    }
  }

  private _onHeard(_: unknown, event: IActivityEvent): void {
    if (event.session_id !== this.id) {
      return;
    }
    if (event.execution_id) {
      this._touched.add(event.execution_id);
    }
    this.requestSync();
  }

  /**
   * Ask for a look at the server.
   *
   * @param all - Whether all cells shown are read again, not only those that
   * still change.
   */
  requestSync(all = false): void {
    this._syncAll = this._syncAll || all;
    if (this._isFollowed) {
      void this._syncing.request();
    }
  }

  /** Keep it in step from now on: somebody looks. */
  follow(): void {
    this._isFollowed = true;
    this.requestSync();
  }

  /** Read the first executions, unless some are known. */
  async readFirst(): Promise<void> {
    if (this.last === 0) {
      const list = await this._list({ after: 0, limit: FIRST_PAGE });
      this._take(list.executions);
    }
  }

  /** Read all executions that are not known yet. */
  async readAll(): Promise<void> {
    await this._readOn(this.last);
  }

  private async _sync(): Promise<void> {
    const touched = this._touched;
    this._touched = new Set();
    const all = this._syncAll;
    this._syncAll = false;
    try {
      const { api } = this._live;
      this._session = this._listed ?? (await api.getSession(this.id));
      const before = this.last;
      await this._readOn(all ? 0 : this._firstPending - 1);
      await this._readTouched(touched, before);
      if (this._state.phase === 'error') {
        this._follower.retry();
      }
      this._setState({ phase: 'ready' });
      await this._events.read(events => {
        this._hasNewEdits ||= events.some(({ type }) => EDITS.test(type));
        this.emitChanged();
      });
      await this._readEdits();
    } catch (error) {
      this._syncAll = true;
      this._setState({ phase: 'error', error });
    }
    this._follow();
  }

  /** Read the proposed edits, if some were proposed or decided since. */
  private async _readEdits(): Promise<void> {
    if (this._hasNewEdits) {
      const { proposals } = await this._live.api.listProposals(null, this.id);
      this._edits = proposals.flatMap(({ edits }) => edits);
      this._hasNewEdits = false;
      this.emitChanged();
    }
  }

  private _follow(): void {
    if (!this.isDisposed) {
      this._follower.choose(this.executions);
    }
  }

  private _list(
    range: Omit<IExecutionRange, 'brief'>
  ): Promise<IExecutionList> {
    return this._live.api.listExecutions(this.id, { ...range, brief: true });
  }

  /** The number of the first that still changes, or of the next to come. */
  private get _firstPending(): number {
    const pending = this._executions.find(
      ({ execution }) => !isFinal(execution.status)
    );
    return pending?.execution.seq ?? this.last + 1;
  }

  /** Read all after a number. */
  private async _readOn(after: number): Promise<void> {
    let next: number | null = after;
    while (next !== null && !this.isDisposed) {
      const list: IExecutionList = await this._list({
        after: next,
        limit: PAGE
      });
      this._take(list.executions);
      next = list.next_after;
    }
  }

  /** Read those that changed after they had finished, as displays may. */
  private async _readTouched(
    touched: ReadonlySet<string>,
    last: number
  ): Promise<void> {
    const models = this.executions.filter(
      ({ execution: { id, seq, status } }) =>
        seq <= last && touched.has(id) && isFinal(status)
    );
    for (const model of models) {
      await model.refresh(this._live.api);
    }
  }

  /** Take executions as the server lists them. */
  private _take(executions: readonly IExecution[]): void {
    if (this.isDisposed) {
      return;
    }
    const added: ExecutionModel[] = [];
    for (const execution of executions) {
      const known = this.find(execution.id);
      if (known) {
        update(known, execution, known === this._follower.current);
      } else {
        const model = new ExecutionModel(execution, each =>
          this._finished.emit(each)
        );
        this._byId.set(execution.id, model);
        added.push(model);
      }
    }
    if (added.length > 0) {
      this._executions = this._executions
        .concat(added)
        .sort((one, other) => one.execution.seq - other.execution.seq);
    }
    this.emitChanged();
  }

  private _setState(state: LoadState): void {
    this._state = state;
    this.emitChanged();
  }

  private readonly _byId = new Map<string, ExecutionModel>();
  private _edits: readonly IProposedEdit[] = [];
  private readonly _events: SessionEvents;
  private _executions: readonly ExecutionModel[] = [];
  private readonly _follower: Follower;
  private _hasNewEdits = false;
  private _isFollowed = false;
  private _session: IAgentSession | null;
  private _state: LoadState = { phase: 'loading' };
  private _syncAll = false;
  private readonly _syncing: Coalescer;
  private _touched = new Set<string>();
  private _finished = new Signal<this, IExecution>(this);
}

/** Bring a model up to date with an answer that may be older than it. */
function update(
  model: ExecutionModel,
  execution: IExecution,
  isFollowed: boolean
): void {
  const isOlder = isFinal(model.execution.status);
  if (isFollowed && !isOlder) {
    model.setStatus(execution);
  } else if (!isOlder || isFinal(execution.status)) {
    model.set(execution);
  }
}
