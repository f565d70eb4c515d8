/** What agents do on this server: the list of sessions, and the chosen one. */
import { Poll } from '@lumino/polling';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { readActivity, SerialWatch } from '../api/events';
import { Coalescer } from './coalescer';
import { SessionModel } from './session';
import type {
  IActivityModel,
  IAgentExecApi,
  IAgentSession,
  LoadState
} from '../tokens';

/** Sessions fetched at once. */
export const SESSIONS_PAGE = 50;

/** Milliseconds between two looks at the list while much happens. */
const REST = 400;

/** Milliseconds between two looks while events are silent. */
const RECONCILE_INTERVAL = 30_000;

/** A signal of the server's events, whichever they are. */
type Events = ISignal<unknown, Readonly<Record<string, unknown>>>;

/**
 * Keeps the list of sessions in step with the server.
 *
 * It follows the server's events. After one was missed, and now and then in
 * case the events themselves are cut off, it reads again all that is shown.
 */
export class ActivityModel implements IActivityModel {
  constructor({ api, events, restored }: ActivityModel.IOptions) {
    this.api = api;
    this._restored = restored;
    this._refreshing = new Coalescer(() => this._read(), REST);
    this._poll = new Poll({
      auto: false,
      factory: () => this._reconcile(),
      frequency: {
        interval: RECONCILE_INTERVAL,
        backoff: true,
        max: 10 * RECONCILE_INTERVAL
      },
      name: 'jupyter-agent-exec:reconcile',
      standby: 'when-hidden'
    });
    this._events = events;
    events.connect(this._onEmission, this);
  }

  readonly api: IAgentExecApi;

  get sessions(): readonly IAgentSession[] {
    return this._sessions;
  }

  get state(): LoadState {
    return this._state;
  }

  get hasMore(): boolean {
    return this._nextAfter !== null;
  }

  get selected(): SessionModel | null {
    return this._selected;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get selectedChanged(): ISignal<this, string | null> {
    return this._selectedChanged;
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  get isActive(): boolean {
    return this._isActive;
  }
  set isActive(value: boolean) {
    if (value === this._isActive) {
      return;
    }
    this._isActive = value;
    if (this._selected) {
      this._selected.isActive = value;
    }
    if (value) {
      void this._poll.start();
      void this._poll.refresh();
    } else {
      void this._poll.stop();
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._events.disconnect(this._onEmission, this);
    this._poll.dispose();
    this._refreshing.dispose();
    this._selected?.dispose();
    Signal.clearData(this);
  }

  select(id: string | null): void {
    this._chosen = true;
    if (id === (this._selected?.id ?? null)) {
      return;
    }
    this._selected?.dispose();
    const known = this._sessions.find(session => session.id === id) ?? null;
    this._selected = id === null ? null : new SessionModel(id, this.api, known);
    if (this._selected) {
      this._selected.isActive = this._isActive;
      if (!known) {
        this._refreshing.request();
      }
    }
    this._selectedChanged.emit(id);
  }

  async refresh(): Promise<void> {
    this._selected?.requestSync(true);
    await this._read();
  }

  async loadMore(): Promise<void> {
    if (this._nextAfter === null) {
      return;
    }
    const page = await this.api.listSessions(this._nextAfter, SESSIONS_PAGE);
    const known = new Set(this._sessions.map(session => session.id));
    this._sessions = this._sessions.concat(
      page.sessions.filter(session => !known.has(session.id))
    );
    this._nextAfter = page.next_after;
    this._emitChanged();
  }

  /** Look whether something changed that no event told of. */
  private async _reconcile(): Promise<void> {
    const silent = !this._heard;
    const length = this._selected?.session?.chain.length;
    this._heard = false;
    await this._read();
    const selected = this._selected;
    if (silent && length !== selected?.session?.chain.length) {
      selected?.requestSync(true);
    }
    if (this._state.phase === 'error') {
      throw this._state.error;
    }
  }

  private _onEmission(
    _: unknown,
    emission: Readonly<Record<string, unknown>>
  ): void {
    const event = readActivity(emission);
    if (!event) {
      return;
    }
    this._heard = true;
    const complete = this._watch.follows(event.serial);
    if (!this._isActive) {
      return;
    }
    if (this._selected && !complete) {
      this._selected.requestSync(true);
    }
    if (this._selected?.id === event.session_id) {
      this._selected.onEvent(event);
    }
    this._refreshing.request();
  }

  /** Read the newest sessions, and the chosen one if it is not among them. */
  private async _read(): Promise<void> {
    try {
      const page = await this.api.listSessions(null, SESSIONS_PAGE);
      if (this.isDisposed) {
        return;
      }
      this._takeNewest(page.sessions, page.next_after);
      this._state = { phase: 'ready' };
      this._emitChanged();
      await this._chooseFirst();
      await this._updateSelected();
    } catch (error) {
      this._state = { phase: 'error', error };
      this._emitChanged();
    }
  }

  /** Put the newest page before the earlier ones that are already known. */
  private _takeNewest(newest: IAgentSession[], nextAfter: string | null): void {
    const oldest = newest[newest.length - 1];
    const at = this._sessions.findIndex(session => session.id === oldest?.id);
    const earlier = at < 0 ? [] : this._sessions.slice(at + 1);
    if (earlier.length === 0) {
      this._nextAfter = nextAfter;
    }
    this._sessions = newest.concat(earlier);
  }

  /** Once, show the session shown last time, or the newest. */
  private async _chooseFirst(): Promise<void> {
    if (this._chosen) {
      return;
    }
    const restored = await this._restored;
    if (this._chosen || this.isDisposed) {
      return;
    }
    const id = restored ?? this._sessions[0]?.id;
    if (id) {
      this.select(id);
    }
  }

  private async _updateSelected(): Promise<void> {
    const selected = this._selected;
    if (!selected) {
      return;
    }
    const listed = this._sessions
      .slice(0, SESSIONS_PAGE)
      .find(session => session.id === selected.id);
    if (listed) {
      selected.setSession(listed);
      return;
    }
    try {
      const session = await this.api.getSession(selected.id);
      if (!selected.isDisposed) {
        selected.setSession(session);
        this._sessions = this._sessions.map(known =>
          known.id === session.id ? session : known
        );
      }
    } catch {
      // Its own reading of executions meets the same error and shows it.
      selected.requestSync();
    }
  }

  private _emitChanged(): void {
    if (!this.isDisposed) {
      this._changed.emit();
    }
  }

  private readonly _events: Events;
  private readonly _poll: Poll;
  private readonly _refreshing: Coalescer;
  private readonly _restored: Promise<string | null>;
  private readonly _watch = new SerialWatch();
  private _chosen = false;
  private _heard = false;
  private _isActive = false;
  private _nextAfter: string | null = null;
  private _selected: SessionModel | null = null;
  private _sessions: IAgentSession[] = [];
  private _state: LoadState = { phase: 'loading' };
  private _changed = new Signal<this, void>(this);
  private _selectedChanged = new Signal<this, string | null>(this);
}

/** The options of an activity model. */
export namespace ActivityModel {
  /** What it is made of. */
  export interface IOptions {
    api: IAgentExecApi;
    events: Events;
    /** The session shown last time, if any. */
    restored: Promise<string | null>;
  }
}
