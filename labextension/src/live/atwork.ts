/** The agents at work on this server, in whichever kernels. */
import type { IAgentExecApi } from '../api/client';
import type { Events } from '../api/events';
import { isFinal, isRunning } from '../wire';
import type { IActivityEvent, IAgentSession, Status } from '../wire';
import { EXECUTIONS_LOOKED_AT, listOpen, Listening } from './listening';
import { whenStopped } from './stopping';
import type { IStopped } from './stopping';

/** Milliseconds between two looks at the server while much happens. */
const REST = 300;

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

/** What is pending, by the ids of session and execution. */
type Pending = Map<string, Map<string, IPendingExecution>>;

/**
 * Counts what is pending as the server's events tell of it.
 *
 * It looks at the server when it is told to, when an event was missed, when an
 * event tells of a session that it does not know, and now and then while an
 * agent is at work; never while the page is hidden.
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

  /** Those with a question first, then in the order of their sessions. */
  get agents(): readonly IAgentAtWork[] {
    return this._agents;
  }

  get(sessionId: string): IAgentAtWork | null {
    return this._agents.find(({ session }) => session.id === sessionId) ?? null;
  }

  /** Interrupt what a session runs, and see whether its kernel is free. */
  async stop(sessionId: string): Promise<IStopped> {
    const pending =
      this._pending.get(sessionId) ?? (await this._look(sessionId));
    const running = Array.from(pending.values()).find(({ status }) =>
      isRunning(status)
    );
    await this._api.interrupt(sessionId);
    return whenStopped(this._api, this._events, sessionId, running?.id ?? null);
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
    const { action, session_id } = event;
    if (action === 'closed') {
      this._sessions.delete(session_id);
    }
    if (apply(event, this._pending)) {
      if (this._pending.has(session_id) && !this._sessions.has(session_id)) {
        this.request();
      }
      this._update();
    }
  }

  protected async read(): Promise<void> {
    const all = this._isStale;
    this._isStale = false;
    const heard: IActivityEvent[] = [];
    this._heard = heard;
    try {
      const open = await listOpen(this._api);
      const pending = all ? await this._lookInto(open) : this._pending;
      // What was told meanwhile is newer than what was read.
      heard.forEach(event => apply(event, pending));
      this._sessions = new Map(open.map(each => [each.id, each]));
      this._pending = pending;
    } catch {
      // The panel says what is wrong with the server. What agents do there
      // is not known until it can be reached.
      this._isStale = true;
      this._pending = new Map();
    }
    this._heard = null;
    this._update();
  }

  /** Find what open sessions do already. */
  private async _lookInto(open: readonly IAgentSession[]): Promise<Pending> {
    const pending: Pending = new Map();
    for (const { asking, executions, id, kernel } of open) {
      const works = kernel?.execution_state !== 'idle';
      if (executions > 0 && (works || asking > 0 || this._isPaused())) {
        pending.set(id, await this._look(id));
      }
    }
    return pending;
  }

  /** The newest executions of a session that have not ended. */
  private async _look(
    sessionId: string
  ): Promise<Map<string, IPendingExecution>> {
    const range = { limit: EXECUTIONS_LOOKED_AT, brief: true };
    const { executions } = await this._api.listExecutions(sessionId, range);
    return new Map(
      executions
        .filter(({ status }) => !isFinal(status))
        .map(({ id, seq, status }) => [id, { id, seq, status }])
    );
  }

  private _update(): void {
    const agents: IAgentAtWork[] = [];
    for (const [id, session] of this._sessions) {
      const pending = Array.from(this._pending.get(id)?.values() ?? []);
      if (pending.length > 0) {
        pending.sort((a, b) => urgency(a) - urgency(b));
        agents.push({ session, pending });
      }
    }
    agents.sort((a, b) => urgency(a.pending[0]) - urgency(b.pending[0]));
    this._agents = agents;
    this.recheck(agents.length > 0, () => this.refresh());
    this.emitChanged();
  }

  private _agents: readonly IAgentAtWork[] = [];
  /** Events that came since a look at the server began; null if none goes on. */
  private _heard: IActivityEvent[] | null = null;
  /** Whether something was missed, so that all has to be looked at. */
  private _isStale = true;
  private _pending: Pending = new Map();
  private _sessions = new Map<string, IAgentSession>();
}

/** Take what an event tells; false if that is nothing about what is pending. */
function apply(event: IActivityEvent, pending: Pending): boolean {
  const { action, execution_id, seq, session_id } = event;
  if (action === 'closed') {
    return pending.delete(session_id);
  }
  if (!execution_id || event.status === undefined) {
    return false;
  }
  const status = event.status as Status;
  const those = pending.get(session_id) ?? new Map<string, IPendingExecution>();
  if (isFinal(status)) {
    if (!those.delete(execution_id)) {
      return false;
    }
  } else {
    those.set(execution_id, { id: execution_id, seq: seq ?? null, status });
  }
  if (those.size > 0) {
    pending.set(session_id, those);
  } else {
    pending.delete(session_id);
  }
  return true;
}

/** How soon a person has to know of an execution. */
function urgency({ status }: IPendingExecution): number {
  return URGENCY.indexOf(status);
}
