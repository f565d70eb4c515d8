/** The agents that work in people's kernels, and what they do there now. */
import type { IAgentExecApi } from '../api/client';
import type { Events } from '../api/events';
import { isFinal, isRunning } from '../wire';
import type {
  IActivityEvent,
  IAgentSession,
  IExecution,
  Status
} from '../wire';
import { EXECUTIONS_LOOKED_AT, listOpen, Listening } from './listening';

/** Milliseconds between two looks at the server while much happens. */
const REST = 300;

/** An agent that works in a kernel which is not its own. */
export interface IAttachedSession {
  readonly session: IAgentSession;
  /** What it runs, or what waits; null if it does nothing. */
  readonly current: IExecution | null;
}

/**
 * Keeps open sessions on notebooks and other people's kernels.
 *
 * It looks at the server only while a notebook is open, and only when an event
 * says that something changed which is not a scratch session's own affair.
 */
export class AttachedSessions extends Listening {
  constructor(
    private readonly _api: IAgentExecApi,
    events: Events
  ) {
    super(events, REST);
  }

  get sessions(): readonly IAttachedSession[] {
    return this._attached;
  }

  /** Whether the server has told which there are. */
  get isReady(): boolean {
    return this._isReady;
  }

  /** Whether a notebook is open; nothing is fetched while none is. */
  get isActive(): boolean {
    return this._isActive;
  }
  set isActive(value: boolean) {
    if (value !== this._isActive) {
      this._isActive = value;
      this.refresh();
    }
  }

  /** The agents in a notebook, or in its kernel, the first attached first. */
  at(path: string, kernelId: string | null): readonly IAttachedSession[] {
    return this._attached.filter(
      ({ session }) => session.path === path || session.kernel?.id === kernelId
    );
  }

  /** An execution that waits or runs; null if it is none of these. */
  pending(executionId: string): IExecution | null {
    return this._pending.get(executionId) ?? null;
  }

  /** What was approved, and is in no notebook before its turn has come. */
  get approved(): readonly IExecution[] {
    return Array.from(this._pending.values()).filter(
      ({ approval, document, status }) =>
        status === 'queued' &&
        document?.status === 'proposed' &&
        approval?.status === 'approved'
    );
  }

  /** Ask for a look at the server. */
  refresh(): void {
    // What was pending may have finished without a word.
    this._lookedAt.clear();
    this.request();
  }

  protected override request(): void {
    if (this._isActive) {
      super.request();
    }
  }

  protected onEvent(event: IActivityEvent, complete: boolean): void {
    if (!complete) {
      this.refresh();
    }
    if (!this._scratch.has(event.session_id)) {
      this._touch(event);
      this.request();
    }
    if (event.action === 'closed') {
      this._scratch.delete(event.session_id);
    }
  }

  private _touch({ execution_id, session_id, status }: IActivityEvent): void {
    if (!execution_id) {
      return;
    }
    if (status !== undefined && isFinal(status as Status)) {
      this._touched.delete(execution_id);
      if (this._pending.delete(execution_id)) {
        this._update();
      }
    } else {
      this._touched.set(execution_id, session_id);
    }
  }

  protected async read(): Promise<void> {
    try {
      const open = await this._listOpen();
      await this._lookInto(open);
      await this._readTouched(open);
      if (!this.isDisposed) {
        this._isReady = true;
        this._sessions = open;
        this._update();
      }
    } catch {
      // The panel says what is wrong with the server. Here, the next event or
      // the next look finds out.
      this._lookedAt.clear();
    }
  }

  /** The open sessions that work in a kernel which is not their own. */
  private async _listOpen(): Promise<IAgentSession[]> {
    const all = await listOpen(this._api);
    return all.filter(({ id, target }) => {
      if (target.kind === 'scratch') {
        this._scratch.add(id);
      }
      return target.kind !== 'scratch';
    });
  }

  /** Find what sessions seen for the first time do already. */
  private async _lookInto(open: readonly IAgentSession[]): Promise<void> {
    for (const session of open.filter(({ id }) => !this._lookedAt.has(id))) {
      this._lookedAt.add(session.id);
      this._forget(execution => execution.session_id === session.id);
      // Also before a kernel that is idle something asks, or is paused.
      if (session.executions > 0) {
        const { executions } = await this._api.listExecutions(session.id, {
          limit: EXECUTIONS_LOOKED_AT
        });
        executions.forEach(each => this._take(each));
      }
    }
  }

  private async _readTouched(open: readonly IAgentSession[]): Promise<void> {
    const ids = new Set(open.map(({ id }) => id));
    this._forget(execution => !ids.has(execution.session_id));
    const touched = Array.from(this._touched);
    this._touched.clear();
    for (const [id, sessionId] of touched) {
      if (ids.has(sessionId)) {
        this._take(await this._api.getExecution(id));
      }
    }
  }

  private _take(execution: IExecution): void {
    if (isFinal(execution.status)) {
      this._pending.delete(execution.id);
    } else {
      this._pending.set(execution.id, execution);
    }
  }

  private _forget(which: (execution: IExecution) => boolean): void {
    for (const execution of Array.from(this._pending.values())) {
      if (which(execution)) {
        this._pending.delete(execution.id);
      }
    }
  }

  private _update(): void {
    const pending = Array.from(this._pending.values()).sort(
      (a, b) => rank(a) - rank(b) || a.seq - b.seq
    );
    this._attached = this._sessions.map(session => ({
      session,
      current: pending.find(each => each.session_id === session.id) ?? null
    }));
    this.recheck(this._isActive && pending.length > 0, () => this.refresh());
    this.emitChanged();
  }

  private _attached: readonly IAttachedSession[] = [];
  private _isActive = false;
  private _isReady = false;
  private _sessions: readonly IAgentSession[] = [];
  /** Sessions whose executions were looked through. */
  private readonly _lookedAt = new Set<string>();
  private readonly _pending = new Map<string, IExecution>();
  /** Sessions with a kernel of their own: what happens there is no matter. */
  private readonly _scratch = new Set<string>();
  /** Executions that changed since the last look, and their sessions. */
  private readonly _touched = new Map<string, string>();
}

/** What runs comes before what waits. */
function rank({ status }: IExecution): number {
  return isRunning(status) ? 0 : 1;
}
