/** The chosen session: its cells by number, of which those looked at are known. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { IAgentExecApi, IExecutionRange } from '../api/client';
import { isFinal } from '../wire';
import type {
  IActivityEvent,
  IAgentSession,
  IExecution,
  IExecutionList,
  IJournalEvent
} from '../wire';
import { Coalescer } from './coalescer';
import type { ExecutionModel } from './execution';
import { Follower } from './follower';
import { AHEAD, KnownExecutions, PAGE } from './known';
import type { IRange } from './known';
import { Observable } from './observable';
import type { LoadState } from './observable';
import { SessionEvents } from './sessionevents';

/** Pages of new cells read to catch up; beyond that, only the newest. */
const PAGES_TO_CATCH_UP = 5;

/** Milliseconds between two looks at the server while much happens. */
const REST = 150;

/** Milliseconds between two pages while somebody scrolls. */
const REST_LOADING = 50;

/** Keeps what is known of a session in step with the server. */
export class SessionModel extends Observable {
  constructor(
    readonly id: string,
    private readonly _api: IAgentExecApi,
    session: IAgentSession | null
  ) {
    super();
    this._session = session;
    this._known = new KnownExecutions(each => this._finished.emit(each));
    this._events = new SessionEvents(id, _api);
    this._follower = new Follower(_api, () => this.requestSync());
    this._syncing = new Coalescer(() => this._sync(), REST);
    this._loading = new Coalescer(() => this._load(), REST_LOADING);
  }

  get session(): IAgentSession | null {
    return this._session;
  }

  get state(): LoadState {
    return this._state;
  }

  /** Those known, in order: near what is looked at, and all that still run. */
  get executions(): readonly ExecutionModel[] {
    return this._known.models;
  }

  /** The number of the last execution; 0 before any is known. */
  get last(): number {
    return this._known.last;
  }

  /** An execution that was pending has finished. */
  get finished(): ISignal<this, IExecution> {
    return this._finished;
  }

  /** An execution was looked for, and is now known. */
  get revealed(): ISignal<this, ExecutionModel> {
    return this._revealed;
  }

  /** Whether somebody looks; nothing is fetched while nobody does. */
  get isActive(): boolean {
    return this._isActive;
  }
  set isActive(value: boolean) {
    if (value === this._isActive) {
      return;
    }
    this._isActive = value;
    if (value) {
      this.requestSync(true);
    } else {
      this._follower.stop();
      this._abort?.abort();
    }
  }

  override dispose(): void {
    this._abort?.abort();
    this._syncing.dispose();
    this._loading.dispose();
    this._follower.dispose();
    this._known.dispose();
    super.dispose();
  }

  /** An execution by its number; null while it is not known. */
  at(seq: number): ExecutionModel | null {
    return this._known.at(seq);
  }

  /** Whether there is no execution of this number, though there are later ones. */
  isAbsent(seq: number): boolean {
    return this._known.isAbsent(seq);
  }

  /** Entries after an execution and before the next; 0 for the beginning. */
  eventsAfter(seq: number): readonly IJournalEvent[] {
    return this._events.after(seq);
  }

  /**
   * Tell what is looked at: that is fetched, and what is far from it forgotten.
   *
   * @param first - Number of the first.
   * @param last - Number of the last.
   * @param held - Numbers of others that must not be forgotten.
   */
  look(first: number, last: number, held: readonly number[] = []): void {
    this._known.look({ first, last }, held);
    const fetched = this._fetched;
    if (
      fetched &&
      (fetched.last < first - AHEAD || fetched.first > last + AHEAD)
    ) {
      // Nobody waits for these any more.
      this._abort?.abort();
    }
    this._requestMissing();
  }

  /** Take what the list of sessions knows of this one. */
  setSession(session: IAgentSession): void {
    const behind =
      this._state.phase === 'error' ||
      session.chain.length !== this._session?.chain.length;
    this._session = session;
    this.emitChanged();
    if (behind) {
      this.requestSync();
    }
  }

  /** Take an event of this session. */
  onEvent(event: IActivityEvent): void {
    if (event.execution_id) {
      this._touched.add(event.execution_id);
    }
    // A review of the session is one of all its cells.
    this.requestSync(event.action === 'session');
  }

  /**
   * Ask for a look at the server.
   *
   * @param all - Whether all cells shown are read again, not only those that
   * still change.
   */
  requestSync(all = false): void {
    this._syncAll = this._syncAll || all;
    if (this._isActive) {
      this._syncing.request();
    }
  }

  /** Look for an execution, however far back; it is then `revealed`. */
  reveal(executionId: string): void {
    this._sought = executionId;
    if (!this._tellRevealed()) {
      this.requestSync();
    }
  }

  /** Fetch what is looked at, unless it was just tried in vain. */
  private _requestMissing(): void {
    const isAble = this._isActive && this._state.phase !== 'error';
    if (isAble && this._known.missing()) {
      this._loading.request();
    }
  }

  private async _sync(): Promise<void> {
    const touched = this._touched;
    this._touched = new Set();
    const all = this._syncAll;
    this._syncAll = false;
    try {
      await this._seek();
      const before = this.last;
      if (this.last === 0) {
        await this._readNewest();
      } else if (all) {
        await this._readView();
      }
      await this._readOn();
      await this._readTouched(touched, before);
      if (this._state.phase === 'error') {
        this._follower.retry();
      }
      this._setState({ phase: 'ready' });
      this._tellRevealed();
      this._requestMissing();
      await this._events.read(() => this.emitChanged());
    } catch (error) {
      this._syncAll = true;
      this._setState({ phase: 'error', error });
    }
    this._follow();
  }

  /** Fetch a page of what is looked at and not known. */
  private async _load(): Promise<void> {
    const range = this._known.missing();
    if (!range || !this._isActive) {
      return;
    }
    const abort = new AbortController();
    this._abort = abort;
    this._fetched = range;
    try {
      await this._readRange(range, abort.signal);
    } catch (error) {
      if (!abort.signal.aborted) {
        this._setState({ phase: 'error', error });
      }
    }
    this._fetched = null;
    this._requestMissing();
    this._follow();
  }

  private _follow(): void {
    if (this._isActive && !this.isDisposed) {
      this._follower.choose(this.executions);
    }
  }

  /** Read what is looked for, and others around it. */
  private async _seek(): Promise<void> {
    if (this._sought === null || this._known.find(this._sought)) {
      return;
    }
    const id = this._sought;
    const { seq } = await this._api.getExecution(id).catch(error => {
      this._sought = null;
      throw error;
    });
    if (this.last === 0) {
      await this._readNewest();
    }
    this._known.seek(seq);
    const first = Math.max(1, seq - PAGE / 2);
    await this._readRange({ first, last: first + PAGE - 1 });
    if (!this._known.find(id)) {
      // It is of another session.
      this._sought = null;
    }
  }

  /** Tell that what was looked for is here, if it is. */
  private _tellRevealed(): boolean {
    const model = this._sought === null ? null : this._known.find(this._sought);
    if (!model || this.isDisposed) {
      return false;
    }
    this._sought = null;
    this._revealed.emit(model);
    this._known.seek(null);
    return true;
  }

  private _list(
    range: Omit<IExecutionRange, 'brief'>,
    signal?: AbortSignal
  ): Promise<IExecutionList> {
    return this._api.listExecutions(this.id, { ...range, brief: true }, signal);
  }

  private async _readNewest(): Promise<void> {
    const { executions } = await this._list({ limit: PAGE });
    this._take(executions, (executions[0]?.seq ?? 1) - 1);
  }

  private async _readRange(
    { first, last }: IRange,
    signal?: AbortSignal
  ): Promise<void> {
    const after = first - 1;
    const limit = last - after;
    const list = await this._list({ after, limit }, signal);
    this._take(list.executions, after, list.next_after === null ? last : 0);
  }

  /** Read again all that is shown, and forget the rest. */
  private async _readView(): Promise<void> {
    const { view, last } = this._known;
    const shown = {
      first: Math.max(1, (view?.first ?? last - PAGE + 1) - AHEAD),
      last: Math.min(last, (view?.last ?? last) + AHEAD)
    };
    this._known.forgetOutside(shown);
    for (let first = shown.first; first <= shown.last; first += PAGE) {
      await this._readRange({
        first,
        last: Math.min(shown.last, first + PAGE - 1)
      });
    }
  }

  /** Read those that still change, and all that are new. */
  private async _readOn(): Promise<void> {
    const pending = this.executions.filter(
      ({ execution }) => !isFinal(execution.status)
    );
    let after = Math.min(
      this.last,
      ...pending.map(({ execution }) => execution.seq - 1)
    );
    for (let page = 0; page < PAGES_TO_CATCH_UP; page++) {
      const list = await this._list({ after, limit: PAGE });
      this._take(list.executions, after);
      if (list.next_after === null) {
        return;
      }
      after = list.next_after;
    }
    // Those between are read when somebody looks at them.
    for (const { execution } of pending) {
      if (execution.seq > after) {
        await this._readRange({ first: execution.seq, last: execution.seq });
      }
    }
    await this._readNewest();
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
      await model.refresh(this._api);
    }
  }

  /** Take executions as the server lists them. */
  private _take(
    executions: readonly IExecution[],
    after: number,
    until?: number
  ): void {
    if (!this.isDisposed) {
      const followed = this._follower.current;
      this._known.take(executions, after, until, followed);
      this.emitChanged();
    }
  }

  private _setState(state: LoadState): void {
    this._state = state;
    this.emitChanged();
  }

  private _abort: AbortController | null = null;
  private readonly _events: SessionEvents;
  /** What is being fetched since somebody looks at it. */
  private _fetched: IRange | null = null;
  private _isActive = false;
  private readonly _known: KnownExecutions;
  private readonly _loading: Coalescer;
  private readonly _follower: Follower;
  private _session: IAgentSession | null;
  /** The execution that is looked for. */
  private _sought: string | null = null;
  private _state: LoadState = { phase: 'loading' };
  private _syncAll = false;
  private readonly _syncing: Coalescer;
  private _touched = new Set<string>();
  private _finished = new Signal<this, IExecution>(this);
  private _revealed = new Signal<this, ExecutionModel>(this);
}
