/** What agents do on this server now: who is at work, and what waits. */
import type { IAgentExecApi } from '../api/client';
import { ActivityListener } from '../api/events';
import type { Events } from '../api/events';
import { isFinal, isRunning } from '../wire';
import type {
  IActivityEvent,
  IAgentSession,
  IExecution,
  ISessionList,
  Status
} from '../wire';
import { Listening } from './listening';

/** Milliseconds between two looks at the server while much happens. */
const REST = 300;

/** Open sessions fetched at once. */
const SESSIONS_PAGE = 100;

/** Executions of a session fetched at once, to find those that wait or run. */
const EXECUTIONS_PAGE = 10;

/** Milliseconds after which is told what is, even if no event has come. */
export const PATIENCE = 15_000;

/** What a person has to know first. */
const URGENCY: readonly Status[] = [
  'awaiting_approval',
  'awaiting_input',
  'running',
  'queued'
];

/** What of an agent's executions has not ended. */
export interface IPendingExecution {
  readonly id: string;
  readonly session_id: string;
  /** Its number in the session; null while nobody has said. */
  readonly seq: number | null;
  readonly status: Status;
  /** As it was last read; null if it was not, as in kernels of agents' own. */
  readonly execution: IExecution | null;
}

/** An open session, and what of it runs, waits or asks. */
export interface IAgentAtWork {
  readonly session: IAgentSession;
  /** What asks comes first, then what runs, then what waits. */
  readonly pending: readonly IPendingExecution[];
  /** What it runs, or else what waits; null if it does nothing that was read. */
  readonly current: IExecution | null;
}

/** What became of stopping an agent. */
export interface IStopped {
  /** What was stopped, as it is now; null if nothing ran. */
  readonly execution: IExecution | null;
  readonly session: IAgentSession;
}

/**
 * Counts what is pending as the server's events tell of it.
 *
 * It looks at all when it is told to, when an event was missed, and now and
 * then while an agent is at work; never while the page is hidden. Executions in
 * notebooks and other people's kernels are read whenever an event tells of them.
 */
export class AgentsAtWork extends Listening {
  /**
   * @param _api - The server.
   * @param _events - Its events.
   * @param _isPaused - Whether agents are paused: then what waits cannot be
   *   told by its kernel.
   */
  constructor(
    private readonly _api: IAgentExecApi,
    private readonly _events: Events,
    private readonly _isPaused: () => boolean
  ) {
    super(_events, REST);
  }

  /** Those at work, with a question first, then in the order of their sessions. */
  get agents(): readonly IAgentAtWork[] {
    return this._agents
      .filter(({ pending }) => pending.length > 0)
      .sort((a, b) => urgency(a.pending[0]) - urgency(b.pending[0]));
  }

  /** All open sessions, the oldest first. */
  get sessions(): readonly IAgentSession[] {
    return [...this._sessions.values()];
  }

  /** The agents in a notebook, or in its kernel, the first attached first. */
  at(path: string, kernelId: string | null): readonly IAgentAtWork[] {
    return this._agents.filter(
      ({ session }) =>
        !isScratch(session) &&
        (session.path === path || session.kernel?.id === kernelId)
    );
  }

  /** A session in which something runs, waits or asks. */
  get(sessionId: string): IAgentAtWork | null {
    return this.agents.find(({ session }) => session.id === sessionId) ?? null;
  }

  /** Whether the server has told what there is. */
  get isReady(): boolean {
    return this._isReady;
  }

  /** An execution that waits or runs; null if nothing is known of that. */
  pending(executionId: string): IExecution | null {
    return this._pending.get(executionId)?.execution ?? null;
  }

  /** What was approved, and is in no notebook before its turn has come. */
  get approved(): readonly IExecution[] {
    return Array.from(this._pending.values()).flatMap(({ execution }) =>
      execution?.status === 'queued' &&
      execution.document?.status === 'proposed' &&
      execution.approval?.status === 'approved'
        ? [execution]
        : []
    );
  }

  /** Interrupt what a session runs, and see what became of it and its kernel. */
  async stop(sessionId: string): Promise<IStopped> {
    const pending =
      this.get(sessionId)?.pending ?? (await this._look(sessionId));
    const running = pending.find(({ status }) => isRunning(status));
    await this._api.interrupt(sessionId);
    const until = Date.now() + PATIENCE;
    for (;;) {
      // Before it is read: what is told meanwhile may be newer.
      const told = this._nextEvent(sessionId, until);
      const execution = running
        ? await this._api.getExecution(running.id)
        : null;
      if (
        execution === null ||
        isFinal(execution.status) ||
        execution.interrupt_ignored ||
        Date.now() >= until
      ) {
        return { execution, session: await this._api.getSession(sessionId) };
      }
      await told;
    }
  }

  /** Ask for a look at the server. */
  refresh(): void {
    this._isStale = true;
    this.request();
  }

  protected override request(): void {
    if (!document.hidden) {
      super.request();
    }
  }

  protected onEvent(event: IActivityEvent, complete: boolean): void {
    if (!complete) {
      this.refresh();
    }
    this._heard?.push(event);
    const { action, execution_id, session_id, status } = event;
    const told = this._take(event);
    const session = this._sessions.get(session_id);
    const known = session_id ? [session] : [...this._sessions.values()];
    if (action === 'closed') {
      this._sessions.delete(session_id);
    }
    if (
      known.some(each => each && !isScratch(each)) ||
      (session_id && !session && (told || action === 'opened')) ||
      this._isStale
    ) {
      if (execution_id && !isFinal(status as Status)) {
        this._touched.add(execution_id);
      }
      this.request();
    }
    if (told || action === 'closed') {
      this._update();
    }
  }

  protected async read(): Promise<void> {
    const all = this._isStale;
    const touched = Array.from(this._touched);
    const heard: IActivityEvent[] = [];
    this._isStale = false;
    this._touched.clear();
    this._heard = heard;
    try {
      const open = await this._listOpen();
      const pending = all
        ? await this._lookInto([...open.values()])
        : await this._readOf(open, touched);
      this._sessions = open;
      this._pending = new Map(
        pending
          .filter(({ session_id }) => open.has(session_id))
          .map(each => [each.id, each])
      );
      // What was told meanwhile is newer than what was read.
      heard.forEach(event => this._take(event));
    } catch {
      // The panel says what is wrong with the server. What agents do there
      // is not known until it can be reached.
      this._isStale = true;
      this._pending.clear();
      this._sessions.clear();
    }
    this._isReady = !this._isStale;
    this._heard = null;
    this._update();
  }

  /** All open sessions by their ids, the oldest first. */
  private async _listOpen(): Promise<Map<string, IAgentSession>> {
    const open: IAgentSession[] = [];
    let after: string | null = null;
    do {
      const page: ISessionList = await this._api.listSessions(
        after,
        SESSIONS_PAGE,
        { status: 'open' }
      );
      open.push(...page.sessions);
      after = page.next_after;
    } while (after !== null);
    return new Map(open.reverse().map(each => [each.id, each]));
  }

  /** Find what open sessions do already. */
  private async _lookInto(
    open: readonly IAgentSession[]
  ): Promise<IPendingExecution[]> {
    const pending: IPendingExecution[] = [];
    for (const { asking, executions, id, kernel } of open) {
      const works = kernel?.execution_state !== 'idle';
      if (executions > 0 && (works || asking > 0 || this._isPaused())) {
        pending.push(...(await this._look(id)));
      }
    }
    return pending;
  }

  /** What is known to be pending, with what has changed read again. */
  private async _readOf(
    open: ReadonlyMap<string, IAgentSession>,
    ids: readonly string[]
  ): Promise<IPendingExecution[]> {
    const pending = new Map(this._pending);
    for (const id of ids) {
      const session = open.get(pending.get(id)?.session_id ?? '');
      if (session && !isScratch(session)) {
        const read = await this._api.getExecution(id);
        pending.delete(id);
        pendingOf([read]).forEach(each => pending.set(id, each));
      }
    }
    return [...pending.values()];
  }

  /** The executions of a session that have not ended: in the kernel, they ran in order. */
  private async _look(sessionId: string): Promise<IPendingExecution[]> {
    const pending: IPendingExecution[] = [];
    const range = { limit: EXECUTIONS_PAGE, brief: true };
    let before: number | undefined;
    for (;;) {
      const { executions } = await this._api.listExecutions(sessionId, {
        ...range,
        before
      });
      pending.unshift(...pendingOf(executions));
      const hasRun = executions.some(
        ({ started_at, status, trial }) =>
          isFinal(status) && started_at !== null && !trial
      );
      if (hasRun || executions.length < EXECUTIONS_PAGE) {
        return pending;
      }
      before = executions[0].seq;
    }
  }

  /** Take what an event tells; false if that is nothing about what is pending. */
  private _take(event: IActivityEvent): boolean {
    const { action, execution_id: id, session_id } = event;
    const known = this._pending;
    if (action === 'closed') {
      const ended = [...known.values()].filter(
        each => each.session_id === session_id
      );
      ended.forEach(each => known.delete(each.id));
      return ended.length > 0;
    }
    if (!id || event.status === undefined) {
      return false;
    }
    const status = event.status as Status;
    if (isFinal(status)) {
      return known.delete(id);
    }
    const { execution = null, seq = null } = known.get(id) ?? {};
    known.set(id, {
      id,
      session_id,
      seq: event.seq ?? seq,
      status,
      execution
    });
    return true;
  }

  /** Wait for what is told of a session, but not beyond a time. */
  private _nextEvent(sessionId: string, until: number): Promise<void> {
    return new Promise(resolve => {
      const end = () => {
        clearTimeout(timer);
        listener.dispose();
        resolve();
      };
      const timer = setTimeout(end, until - Date.now());
      const listener = new ActivityListener(this._events, event => {
        if (event.session_id === sessionId) {
          end();
        }
      });
    });
  }

  private _update(): void {
    const all = [...this._pending.values()];
    this._agents = [...this._sessions.values()].map(session => {
      const pending = all
        .filter(({ session_id }) => session_id === session.id)
        .sort((a, b) => urgency(a) - urgency(b));
      const read = pending.flatMap(({ execution }) => execution ?? []);
      const current =
        read.find(({ status }) => isRunning(status)) ?? read[0] ?? null;
      return { session, pending, current };
    });
    this.recheck(this.agents.length > 0, () => this.refresh());
    this.emitChanged();
  }

  private _agents: readonly IAgentAtWork[] = [];
  /** Events that came since a look at the server began; null if none goes on. */
  private _heard: IActivityEvent[] | null = null;
  private _isReady = false;
  /** Whether something was missed, so that all has to be looked at. */
  private _isStale = true;
  private _pending = new Map<string, IPendingExecution>();
  private _sessions = new Map<string, IAgentSession>();
  /** Executions that changed since the last look. */
  private readonly _touched = new Set<string>();
}

/** Those of a list that have not ended. */
function pendingOf(executions: readonly IExecution[]): IPendingExecution[] {
  return executions
    .filter(({ status }) => !isFinal(status))
    .map(execution => {
      const { id, seq, session_id, status } = execution;
      return { id, seq, session_id, status, execution };
    });
}

/** Whether a session has a kernel of its own. */
function isScratch({ target }: IAgentSession): boolean {
  return target.kind === 'scratch';
}

/** How soon a person has to know of an execution. */
function urgency({ status }: IPendingExecution): number {
  return URGENCY.indexOf(status);
}
