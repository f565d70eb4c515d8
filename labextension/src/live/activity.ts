/** What agents do on this server: the list of sessions, and those that documents show. */
import { Poll } from '@lumino/polling';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { IAgentExecApi } from '../api/client';
import type { Events } from '../api/events';
import type { IActivityEvent, IAgentSession, ISessionList } from '../wire';
import { Listening } from './listening';
import type { LoadState } from './observable';
import { SessionModel } from './session';

/** Sessions fetched at once. */
export const SESSIONS_PAGE = 50;

/** The most that the server lists at once. */
const LONGEST_PAGE = 500;

/** Milliseconds between two looks at the list while much happens. */
const REST = 400;

/** Milliseconds between two looks while events are silent. */
const RECONCILE_INTERVAL = 30_000;

/**
 * Keeps the list of sessions in step with the server.
 *
 * It follows the server's events. After one was missed, and now and then in
 * case the events themselves are cut off, it reads again all that is shown.
 */
export class ActivityModel extends Listening {
  constructor({ api, events }: ActivityModel.IOptions) {
    super(events, REST);
    this.api = api;
    this._poll = new Poll({
      auto: false,
      factory: () => this._reconcile(),
      frequency: { interval: RECONCILE_INTERVAL, backoff: false },
      name: 'jupyter-agent-exec:reconcile',
      standby: 'when-hidden'
    });
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

  /** The session whose document is in front; null if none is. */
  get selected(): SessionModel | null {
    return this._selected;
  }
  set selected(session: SessionModel | null) {
    if (session !== this._selected) {
      this._selected = session;
      this._selectedChanged.emit();
    }
  }

  get selectedChanged(): ISignal<this, void> {
    return this._selectedChanged;
  }

  /** Whether somebody sees the list; it is not read while nobody does. */
  get isActive(): boolean {
    return this._isActive;
  }
  set isActive(value: boolean) {
    if (value === this._isActive) {
      return;
    }
    this._isActive = value;
    this._look();
    if (value) {
      void this._poll.refresh();
    }
  }

  override dispose(): void {
    this._poll.dispose();
    this._open.forEach(each => each.dispose());
    super.dispose();
  }

  /** The model of a session that a document shows, until it is closed. */
  open(id: string): SessionModel {
    const known = this._open.get(id);
    if (known) {
      return known;
    }
    const session = this._sessions.find(each => each.id === id) ?? null;
    const model = new SessionModel(id, this.api, session);
    this._open.set(id, model);
    this._look();
    this.request();
    return model;
  }

  /** The document that showed a session is closed. */
  close(id: string): void {
    const closed = this._open.get(id);
    if (closed === this._selected) {
      this.selected = null;
    }
    closed?.dispose();
    this._open.delete(id);
    this._look();
  }

  /** A person asks for all that is shown to be read again. */
  get refreshed(): ISignal<this, void> {
    return this._refreshed;
  }

  async refresh(): Promise<void> {
    this._refreshed.emit();
    this._open.forEach(each => each.requestSync(true));
    await this.read();
  }

  async loadMore(): Promise<void> {
    const after = this._nextAfter;
    if (after === null) {
      return;
    }
    const page = await this.api.listSessions(after, SESSIONS_PAGE);
    if (after !== this._nextAfter) {
      return;
    }
    const known = new Set(this._sessions.map(session => session.id));
    this._sessions = this._sessions.concat(
      page.sessions.filter(session => !known.has(session.id))
    );
    this._nextAfter = page.next_after;
    this._round++;
    this.emitChanged();
  }

  /** Look whether something changed that no event told of. */
  private async _reconcile(): Promise<void> {
    const silent = !this._heard;
    const lengthOf = ({ session }: SessionModel) => session?.chain.length;
    const open = Array.from(this._open.values());
    const lengths = open.map(lengthOf);
    this._heard = false;
    await this.read();
    open
      .filter((each, place) => silent && lengthOf(each) !== lengths[place])
      .forEach(each => each.requestSync(true));
    if (this._state.phase === 'error') {
      throw this._state.error;
    }
  }

  protected onEvent(event: IActivityEvent, complete: boolean): void {
    this._heard = true;
    this._open.forEach(each => {
      if (!complete) {
        each.requestSync(true);
      }
      if (each.id === event.session_id) {
        each.onEvent(event);
      }
    });
    if (this._isWatched) {
      this.request();
    }
  }

  private get _isWatched(): boolean {
    return this._isActive || this._open.size > 0;
  }

  /** Look now and then while there is somebody to see it. */
  private _look(): void {
    if (this._isWatched) {
      void this._poll.start();
    } else {
      void this._poll.stop();
      this.recheck(false);
    }
  }

  /** Read all sessions listed, and those of documents that are not among them. */
  protected async read(): Promise<void> {
    const round = this._round;
    try {
      const page = await this._readShown();
      if (this._isPast(round)) {
        return;
      }
      this._sessions = page.sessions;
      this._nextAfter = page.next_after;
      this._state = { phase: 'ready' };
      // No event tells that a kernel is idle.
      const isBusy = page.sessions.some(
        ({ kernel }) => kernel?.execution_state === 'busy'
      );
      this.recheck(isBusy && this._isWatched, () => this._poll.refresh());
      this.emitChanged();
      const open = Array.from(this._open.values());
      await Promise.all(open.map(each => this._update(each)));
    } catch (error) {
      if (!this._isPast(round)) {
        this._state = { phase: 'error', error };
        this.emitChanged();
      }
    }
  }

  /** Whether others are to be shown by now; they are then read. */
  private _isPast(round: number): boolean {
    if (round !== this._round) {
      this.request();
    }
    return this.isDisposed || round !== this._round;
  }

  private _readShown(): Promise<ISessionList> {
    // Sessions change places when they close, so a part is not enough.
    const shown = Math.max(this._sessions.length, SESSIONS_PAGE);
    const limit = Math.min(shown, LONGEST_PAGE);
    return this.api.listSessions(null, limit);
  }

  private async _update(open: SessionModel): Promise<void> {
    const listed = this._sessions.find(({ id }) => id === open.id);
    if (listed) {
      open.setSession(listed);
      return;
    }
    try {
      const session = await this.api.getSession(open.id);
      if (!open.isDisposed) {
        open.setSession(session);
      }
    } catch {
      // Its own reading of executions meets the same error and shows it.
      open.requestSync();
    }
  }

  private readonly _poll: Poll;
  private _heard = false;
  private _isActive = false;
  private _nextAfter: string | null = null;
  private readonly _open = new Map<string, SessionModel>();
  /** Counts what makes an answer that is under way too old. */
  private _round = 0;
  private _selected: SessionModel | null = null;
  private _sessions: IAgentSession[] = [];
  private _state: LoadState = { phase: 'loading' };
  private _refreshed = new Signal<this, void>(this);
  private _selectedChanged = new Signal<this, void>(this);
}

/** The options of an activity model. */
export namespace ActivityModel {
  /** What it is made of. */
  export interface IOptions {
    api: IAgentExecApi;
    events: Events;
  }
}
