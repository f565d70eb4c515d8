/** The chosen session: its newest cells, and earlier ones on demand. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { Coalescer } from './coalescer';
import { ExecutionModel } from './execution';
import { Follower } from './follower';
import { isFinal } from '../tokens';
import type {
  IActivityEvent,
  IAgentExecApi,
  IAgentSession,
  IExecution,
  ISessionModel,
  LoadState
} from '../tokens';

/** Cells fetched at once. */
export const PAGE = 20;

/** Cells kept while new ones come; whoever asks for earlier ones keeps more. */
export const KEPT = 100;

/** Pages of new cells read to catch up; beyond that, only the newest. */
const PAGES_TO_CATCH_UP = 5;

/** Milliseconds between two looks at the server while much happens. */
const REST = 150;

/** Keeps a session's executions in step with the server. */
export class SessionModel implements ISessionModel {
  constructor(
    readonly id: string,
    private readonly _api: IAgentExecApi,
    session: IAgentSession | null
  ) {
    this._session = session;
    this._follower = new Follower(_api, () => this.requestSync());
    this._syncing = new Coalescer(() => this._sync(), REST);
  }

  get session(): IAgentSession | null {
    return this._session;
  }

  get state(): LoadState {
    return this._state;
  }

  get executions(): readonly ExecutionModel[] {
    return this._executions;
  }

  get hasEarlier(): boolean {
    return this._executions.length > 0 && this._firstSeq > 1;
  }

  get loadingEarlier(): boolean {
    return this._loadingEarlier;
  }

  get hasLater(): boolean {
    return this._hasLater;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get finished(): ISignal<this, IExecution> {
    return this._finished;
  }

  get revealed(): ISignal<this, ExecutionModel> {
    return this._revealed;
  }

  get isDisposed(): boolean {
    return this._syncing.isDisposed;
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
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._syncing.dispose();
    this._follower.dispose();
    this._executions.forEach(model => model.dispose());
    Signal.clearData(this);
  }

  /** Take what the list of sessions knows of this one. */
  setSession(session: IAgentSession): void {
    const behind =
      this._state.phase === 'error' ||
      session.chain.length !== this._session?.chain.length;
    this._session = session;
    this._changed.emit();
    if (behind) {
      this.requestSync();
    }
  }

  /** Take an event of this session. */
  onEvent(event: IActivityEvent): void {
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
    if (this._isActive) {
      this._syncing.request();
    }
  }

  async loadEarlier(): Promise<void> {
    if (this._loadingEarlier || !this.hasEarlier) {
      return;
    }
    this._loadingEarlier = true;
    this._changed.emit();
    try {
      await this._readBack(PAGE);
    } finally {
      this._loadingEarlier = false;
      this._emitChanged();
    }
  }

  async loadLater(): Promise<void> {
    const after = this._lastSeq;
    const page = await this._api.listExecutions(this.id, {
      after,
      limit: PAGE
    });
    if (!this.isDisposed && this._hasLater && after === this._lastSeq) {
      this._hasLater = page.next_after !== null;
      this._merge(page.executions);
      this.requestSync();
    }
  }

  showNewest(): void {
    this._hasLater = false;
    this._drop(() => true);
    this.requestSync();
  }

  reveal(executionId: string): void {
    this._sought = executionId;
    if (!this._tellRevealed()) {
      this.requestSync();
    }
  }

  private get _firstSeq(): number {
    return this._executions[0].execution.seq;
  }

  private get _lastSeq(): number {
    return this._executions[this._executions.length - 1].execution.seq;
  }

  private async _sync(): Promise<void> {
    const touched = this._touched;
    this._touched = new Set();
    try {
      await this._seek();
      const all = this._syncAll || this._executions.length === 0;
      this._syncAll = false;
      const after = this._syncStart(all);
      const complete = after !== null && (await this._readFrom(after));
      if (!complete) {
        await this._readNewest();
      }
      await this._readTouched(touched, after);
      this._setState({ phase: 'ready' });
      this._tellRevealed();
    } catch (error) {
      this._syncAll = true;
      this._setState({ phase: 'error', error });
    }
    if (this._isActive && !this.isDisposed) {
      this._follower.choose(this._executions);
    }
  }

  /** The number after which to read; null to begin with the newest. */
  private _syncStart(all: boolean): number | null {
    const models = this._executions;
    if (models.length === 0) {
      return null;
    }
    if (all) {
      return this._firstSeq - 1;
    }
    const pending = models.find(model => !isFinal(model.execution.status));
    return pending ? pending.execution.seq - 1 : this._lastSeq;
  }

  /** Read what is looked for, and others around it. */
  private async _seek(): Promise<void> {
    if (this._sought === null || this._find(this._sought)) {
      return;
    }
    const id = this._sought;
    const { seq } = await this._api.getExecution(id).catch(error => {
      this._sought = null;
      throw error;
    });
    const anew = this._executions.length === 0 || this._hasLater;
    if (anew || this._firstSeq - seq > KEPT) {
      await this._readAround(seq);
    } else if (this._firstSeq > seq) {
      await this._readBack(this._firstSeq - seq + PAGE / 2);
    }
  }

  /** Read so many before the first. */
  private async _readBack(limit: number): Promise<void> {
    const before = this._firstSeq;
    const page = await this._api.listExecutions(this.id, { before, limit });
    if (!this.isDisposed) {
      this._kept = Math.max(this._kept, this._executions.length + limit);
      this._merge(page.executions);
    }
  }

  /** Show those around a number instead of the newest. */
  private async _readAround(seq: number): Promise<void> {
    const page = await this._api.listExecutions(this.id, {
      after: Math.max(0, seq - 1 - PAGE / 2),
      limit: PAGE
    });
    if (!this.isDisposed) {
      this._drop(() => true);
      this._hasLater = page.next_after !== null;
      this._kept = KEPT;
      this._merge(page.executions);
    }
  }

  /** Tell that what was looked for is here, if it is. */
  private _tellRevealed(): boolean {
    const model = this._sought === null ? null : this._find(this._sought);
    if (!model || this.isDisposed) {
      return false;
    }
    this._sought = null;
    this._revealed.emit(model);
    return true;
  }

  private _find(id: string): ExecutionModel | null {
    return this._executions.find(each => each.execution.id === id) ?? null;
  }

  /** Read all after a number; false if that is too far behind. */
  private async _readFrom(start: number): Promise<boolean> {
    const shown = this._executions.filter(
      ({ execution }) => execution.seq > start
    );
    const pages =
      Math.ceil(shown.length / PAGE) + (this._hasLater ? 0 : PAGES_TO_CATCH_UP);
    let after: number | null = start;
    for (let page = 0; page < pages; page++) {
      const list = await this._api.listExecutions(this.id, {
        after,
        limit: PAGE
      });
      this._merge(list.executions);
      after = list.next_after;
      if (after === null) {
        this._hasLater = false;
        return true;
      }
    }
    // Those between the ones shown and the newest are left for later.
    return this._hasLater;
  }

  private async _readNewest(): Promise<void> {
    const { executions } = await this._api.listExecutions(this.id, {
      limit: PAGE
    });
    if (this.isDisposed) {
      return;
    }
    const oldest = executions[0]?.seq ?? Infinity;
    this._drop(model => model.execution.seq < oldest);
    this._kept = KEPT;
    this._merge(executions);
  }

  /** Read those that changed after they had finished, as displays may. */
  private async _readTouched(
    touched: ReadonlySet<string>,
    after: number | null
  ): Promise<void> {
    const models = this._executions.filter(
      ({ execution }) =>
        after !== null && execution.seq <= after && touched.has(execution.id)
    );
    for (const model of models) {
      const execution = await this._api.getExecution(model.execution.id);
      if (!model.isDisposed) {
        model.set(execution);
      }
    }
  }

  /** Take executions as the server lists them. */
  private _merge(executions: readonly IExecution[]): void {
    if (this.isDisposed) {
      return;
    }
    const known = new Map(
      this._executions.map(model => [model.execution.id, model])
    );
    for (const execution of executions) {
      const model = known.get(execution.id);
      if (model) {
        this._update(model, execution);
      } else {
        this._executions.push(
          new ExecutionModel(execution, each => this._finished.emit(each))
        );
      }
    }
    this._executions.sort((a, b) => a.execution.seq - b.execution.seq);
    const surplus = this._executions.length - this._kept;
    if (surplus > 0) {
      const gone = new Set(this._executions.slice(0, surplus));
      this._drop(model => gone.has(model));
    }
    this._emitChanged();
  }

  private _update(model: ExecutionModel, execution: IExecution): void {
    if (isFinal(execution.status)) {
      model.set(execution);
    } else if (model === this._follower.current) {
      model.setStatus(execution);
    } else if (!isFinal(model.execution.status)) {
      model.set(execution);
    }
  }

  private _drop(gone: (model: ExecutionModel) => boolean): void {
    const kept: ExecutionModel[] = [];
    for (const model of this._executions) {
      if (gone(model)) {
        model.dispose();
      } else {
        kept.push(model);
      }
    }
    this._executions = kept;
  }

  private _setState(state: LoadState): void {
    this._state = state;
    this._emitChanged();
  }

  private _emitChanged(): void {
    if (!this.isDisposed) {
      this._changed.emit();
    }
  }

  private _session: IAgentSession | null;
  private _state: LoadState = { phase: 'loading' };
  private _executions: ExecutionModel[] = [];
  private _kept = KEPT;
  private _hasLater = false;
  private _isActive = false;
  private _loadingEarlier = false;
  /** The execution that is looked for. */
  private _sought: string | null = null;
  private _syncAll = false;
  private _touched = new Set<string>();
  private readonly _follower: Follower;
  private readonly _syncing: Coalescer;
  private _changed = new Signal<this, void>(this);
  private _finished = new Signal<this, IExecution>(this);
  private _revealed = new Signal<this, ExecutionModel>(this);
}
