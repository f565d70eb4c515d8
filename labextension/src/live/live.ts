/** What agents do on this server now, and what waits: one model for all that shows it. */
import { signalToPromise } from '@jupyterlab/coreutils';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { ApiError } from '../api/errors';
import type { IAgentExecApi } from '../api/client';
import { readActivity, SerialWatch } from '../api/events';
import type { Events } from '../api/events';
import { isProposed, isRunning } from '../wire';
import type {
  IActivityEvent,
  IAgentSession,
  IApprovalList,
  IExecution,
  ISessionList,
  Status
} from '../wire';
import { Coalescer } from './coalescer';
import { Observable } from './observable';

/** Closed sessions listed at once. */
export const SESSIONS_PAGE = 50;

/** The most that the server lists at once. */
const LONGEST_PAGE = 500;

/** Milliseconds between two looks at the server while much happens. */
const READ_INTERVAL_MS = 1000;

/** Milliseconds after which what goes on is read again: an event may be lost. */
export const RECHECK_INTERVAL = 5000;

/** The same for what is shown while nothing goes on. */
const RECONCILE_INTERVAL = 30_000;

/** Milliseconds until a server that cannot be reached is tried again. */
const FIRST_RETRY = 2000;
const LAST_RETRY = 60_000;

/** Milliseconds after which events are back when the server is. */
export const EVENTS_BACK = 30_000;

/** Milliseconds to wait for stopped code to end before the user is told that it still runs. */
export const PATIENCE = 15_000;

/** What a person has to know first. */
const URGENCY: readonly Status[] = [
  'awaiting_approval',
  'awaiting_input',
  'running',
  'queued'
];

/** Actions of events that nobody waits for: what they tell is read at the usual pace. */
const CALM: ReadonlySet<string> = new Set(['kernel', 'notebook', 'person']);

/** An open session, and what of it runs, waits or asks. */
export interface IAgentAtWork {
  readonly session: IAgentSession;
  /** What asks comes first, then what runs, then what waits. */
  readonly pending: readonly IExecution[];
  /** What it runs, or else what waits; null if it does nothing. */
  readonly current: IExecution | null;
}

/** What became of stopping an agent. */
export interface IStopped {
  /** What was stopped, as it is now; null if nothing ran. */
  readonly execution: IExecution | null;
  readonly session: IAgentSession;
}

/**
 * Keeps one answer of the server, and reads it again after its events.
 *
 * It also looks when it is told to, now and then while something goes on or is
 * shown, and ever more rarely while the server cannot be reached; never by
 * itself while the page is hidden.
 */
export class LiveModel extends Observable {
  /**
   * @param api - The server.
   * @param _events - Its events.
   */
  constructor(
    readonly api: IAgentExecApi,
    private readonly _events: Events
  ) {
    super();
    _events.connect(this._onEmission, this);
  }

  /** What the server told last; null until it has. */
  get now(): IApprovalList | null {
    return this._now;
  }

  /** Why it could not be read; null if it was. */
  get error(): unknown {
    return this._error;
  }

  /** Whether the server has told what there is now. */
  get isReady(): boolean {
    return this._now !== null && this._error === null;
  }

  /** What asks, the longest waiting first. */
  get asking(): readonly IExecution[] {
    return this._now?.executions ?? [];
  }

  /** What runs, and waits for input. */
  get inputs(): readonly IExecution[] {
    return (this._now?.pending ?? []).filter(each => each.input);
  }

  /** An execution that asks; null if it does not. */
  asks(executionId: string): IExecution | null {
    return this.asking.find(({ id }) => id === executionId) ?? null;
  }

  /** The sessions that propose changes, the oldest first. */
  get proposing(): readonly IAgentSession[] {
    return this._now?.proposing ?? [];
  }

  /** All open sessions, the newest first. */
  get sessions(): readonly IAgentSession[] {
    return this._now?.sessions ?? [];
  }

  /** Closed sessions, the newest first, read while the panel is shown. */
  get closed(): readonly IAgentSession[] {
    return this._closed;
  }

  get hasMoreClosed(): boolean {
    return this._hasMoreClosed;
  }

  /** Those at work, with a question first, then in the order of their sessions. */
  get agents(): readonly IAgentAtWork[] {
    return this._agents
      .filter(({ pending }) => pending.length > 0)
      .sort((a, b) => urgency(a.pending[0]) - urgency(b.pending[0]));
  }

  /** The agents in a notebook, or in its kernel, the first attached first. */
  at(path: string, kernelId: string | null): readonly IAgentAtWork[] {
    return this._agents.filter(
      ({ session: { kernel, path: own, target } }) =>
        target.kind !== 'scratch' && (own === path || kernel?.id === kernelId)
    );
  }

  /** An open session, and what it does; null if that is not known. */
  get(sessionId: string): IAgentAtWork | null {
    return this._agents.find(({ session }) => session.id === sessionId) ?? null;
  }

  /** An execution that asks, waits or runs; null if it does not. */
  pending(executionId: string): IExecution | null {
    const pending = this._now?.pending.find(({ id }) => id === executionId);
    return this.asks(executionId) ?? pending ?? null;
  }

  /** An event of the server's about agents. */
  get heard(): ISignal<this, IActivityEvent> {
    return this._heard;
  }

  /** Events may have been missed: all that is shown is to be read again. */
  get missed(): ISignal<this, void> {
    return this._missed;
  }

  /** What the user is about to approve instead; undefined if nothing else. */
  draftOf({ id, source_sha256 }: IExecution): string | undefined {
    return this._drafts.get(`${id} ${source_sha256}`);
  }

  /** Keep what the user makes of a source; undefined if it is the agent's again. */
  setDraft({ id, source_sha256 }: IExecution, source?: string): void {
    const key = `${id} ${source_sha256}`;
    if (source === undefined) {
      this._drafts.delete(key);
    } else {
      this._drafts.set(key, source);
    }
    this._edited.emit();
  }

  /** The user has edited a source. */
  get edited(): ISignal<this, void> {
    return this._edited;
  }

  /** The session whose document is in front; null if none is. */
  get selected(): string | null {
    return this._selected;
  }
  set selected(id: string | null) {
    if (id !== this._selected) {
      this._selected = id;
      this._look();
    }
  }

  /** Whether somebody sees the panel. */
  get isActive(): boolean {
    return this._isActive;
  }
  set isActive(value: boolean) {
    if (value !== this._isActive) {
      this._isActive = value;
      this._look();
    }
  }

  override dispose(): void {
    this._events.disconnect(this._onEmission, this);
    this._reading.dispose();
    clearTimeout(this._later);
    clearTimeout(this._back);
    super.dispose();
  }

  /** Look at the server now. */
  refresh(): Promise<void> {
    return this._reading.request(true);
  }

  /** Look at the server, and have all read again that shows something. */
  recover(): Promise<void> {
    this._miss();
    return this.refresh();
  }

  /** List more closed sessions. */
  async loadMore(): Promise<void> {
    this._wanted = this._closed.length + SESSIONS_PAGE;
    this._isStale = true;
    await this.refresh();
  }

  /** Wait for what changes what the server tells, and for that to be read. */
  async settle<T>(done: Promise<T>): Promise<T> {
    try {
      return await done;
    } finally {
      // A view of what was decided or refused shows its state now.
      await this.refresh();
    }
  }

  /** Interrupt what a session runs, and see what became of it and its kernel. */
  async stop(sessionId: string): Promise<IStopped> {
    await this.refresh();
    const id = this.get(sessionId)?.pending.find(isItRunning)?.id;
    await this.settle(this.api.interrupt(sessionId));
    const until = Date.now() + PATIENCE;
    for (let left = PATIENCE; id && left > 0; left = until - Date.now()) {
      if (this.pending(id)?.interrupt_ignored !== false) {
        break;
      }
      await signalToPromise(this.changed, left).catch(() => undefined);
    }
    const execution = id ? await this.api.getExecution(id) : null;
    return { execution, session: await this.api.getSession(sessionId) };
  }

  private _onEmission(
    _: unknown,
    emission: Readonly<Record<string, unknown>>
  ): void {
    const event = readActivity(emission);
    if (!event) {
      return;
    }
    if (!this._serials.follows(event.serial)) {
      this._miss();
    }
    const { action, session_id } = event;
    const isOther = session_id !== '' && !this.get(session_id);
    this._isStale ||= action === 'closed' || (isOther && action !== 'opened');
    this._heard.emit(event);
    if (!document.hidden) {
      void this._reading.request(this._isUrgent(event));
    }
  }

  /** Whether a person waits for what an event tells. */
  private _isUrgent({ action, execution_id, status }: IActivityEvent): boolean {
    if (!execution_id) {
      return !CALM.has(action);
    }
    const known = this.pending(execution_id);
    return (
      (status ?? '').startsWith('awaiting') ||
      known?.status === 'awaiting_approval' ||
      (known !== null && isProposed(known))
    );
  }

  private _miss(): void {
    this._isStale = true;
    this._missed.emit();
  }

  /** Somebody looks at something else. */
  private _look(): void {
    this.emitChanged();
    if (this._isWatched) {
      void this.refresh();
    }
  }

  private get _isWatched(): boolean {
    return this._isActive || this._selected !== null;
  }

  private async _read(): Promise<void> {
    clearTimeout(this._later);
    const readsClosed = this._isActive && this._isStale;
    try {
      this._isStale &&= !readsClosed;
      const [now] = await Promise.all([
        this.api.getApprovals(),
        readsClosed && this._readClosed()
      ]);
      this._now = now;
      this._error = null;
      this._agents = agentsOf(now);
    } catch (error) {
      // What agents do is not known until the server can be reached.
      this._isStale ||= readsClosed;
      this._error = error;
      this._agents = [];
    }
    if (!this.isDisposed) {
      this._lookLater();
      this.emitChanged();
    }
  }

  /** Read as many closed sessions as are wanted: they change places. */
  private async _readClosed(): Promise<void> {
    const closed: IAgentSession[] = [];
    let after: string | null = null;
    do {
      const limit = Math.min(this._wanted - closed.length, LONGEST_PAGE);
      const filter = { status: 'closed' } as const;
      const page: ISessionList = await this.api.listSessions(
        after,
        limit,
        filter
      );
      closed.push(...page.sessions);
      after = page.next_after;
    } while (after !== null && closed.length < this._wanted);
    this._closed = closed;
    this._hasMoreClosed = after !== null;
  }

  private _lookLater(): void {
    const error = this._error;
    const isAway = error instanceof ApiError && error.failure === 'unreachable';
    const isBack = this._retry > 0 && !isAway;
    this._retry = isAway
      ? Math.min(this._retry * 2 || FIRST_RETRY, LAST_RETRY)
      : 0;
    if (isBack) {
      this._miss();
      clearTimeout(this._back);
      this._back = setTimeout(() => this._miss(), EVENTS_BACK);
    }
    const delay =
      this._retry ||
      (this._goesOn && RECHECK_INTERVAL) ||
      (this._isWatched && RECONCILE_INTERVAL);
    if (delay) {
      this._later = setTimeout(() => {
        if (!document.hidden) {
          void this.refresh(); // else when the page is shown
        }
      }, delay);
    }
  }

  /** Whether something is shown that is expected to end. */
  private get _goesOn(): boolean {
    const { broken = null, sinks = [] } = this._now ?? {};
    const isBusy = ({ kernel }: IAgentSession) =>
      kernel?.execution_state === 'busy';
    return (
      this.agents.length > 0 ||
      sinks.length > 0 ||
      broken !== null ||
      // No event tells that a kernel is idle.
      (this._isWatched && this.sessions.some(isBusy))
    );
  }

  private _agents: readonly IAgentAtWork[] = [];
  private _back: ReturnType<typeof setTimeout> | undefined;
  private _closed: readonly IAgentSession[] = [];
  private readonly _drafts = new Map<string, string>();
  private _error: unknown = null;
  private _hasMoreClosed = false;
  private _isActive = false;
  /** Whether the closed sessions may be others by now. */
  private _isStale = true;
  private _later: ReturnType<typeof setTimeout> | undefined;
  private _now: IApprovalList | null = null;
  private readonly _reading = new Coalescer(
    () => this._read(),
    READ_INTERVAL_MS
  );
  private _retry = 0;
  private _selected: string | null = null;
  private readonly _serials = new SerialWatch();
  private _wanted = SESSIONS_PAGE;
  private readonly _edited = new Signal<this, void>(this);
  private readonly _heard = new Signal<this, IActivityEvent>(this);
  private readonly _missed = new Signal<this, void>(this);
}

/** The open sessions, the oldest first, with what each does. */
function agentsOf(now: IApprovalList): IAgentAtWork[] {
  const all = [...now.executions, ...now.pending];
  return [...now.sessions].reverse().map(session => {
    const pending = all
      .filter(({ session_id }) => session_id === session.id)
      .sort((a, b) => urgency(a) - urgency(b));
    const current = pending.find(isItRunning) ?? pending[0] ?? null;
    return { session, pending, current };
  });
}

function isItRunning({ status }: IExecution): boolean {
  return isRunning(status);
}

/** How soon a person has to know of an execution. */
function urgency({ status }: IExecution): number {
  return URGENCY.indexOf(status);
}
