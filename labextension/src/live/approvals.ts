/** What of agents waits for a person. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { ApiError } from '../api/errors';
import type { IAgentExecApi } from '../api/client';
import type { Events } from '../api/events';
import type {
  GrantSpan,
  IActivityEvent,
  IAgentSession,
  IApprovalList,
  IApprovalPolicy,
  IExecution
} from '../wire';
import { Listening } from './listening';

/** Milliseconds between two looks at the server while much happens. */
const REST = 200;

/** Milliseconds until a server that cannot be reached is tried again. */
const FIRST_RETRY = 2000;
const LAST_RETRY = 60_000;

/** Milliseconds after which events are back when the server is. */
const EVENTS_BACK = 30_000;

/**
 * Keeps what waits in step with the server.
 *
 * It looks when it is told to and when an event says that something waits or
 * was decided. Only a server that cannot be reached is tried again by itself.
 */
export class ApprovalsModel extends Listening {
  /**
   * @param _api - The server.
   * @param events - Its events.
   * @param _lost - Emits when the page finds that the server is away.
   */
  constructor(
    private readonly _api: IAgentExecApi,
    events: Events,
    private readonly _lost: ISignal<unknown, unknown>
  ) {
    super(events, REST);
    _lost.connect(this.refresh, this);
  }

  /** What asks, the longest waiting first. */
  get asking(): readonly IExecution[] {
    return this._asking;
  }

  /** The sessions that propose changes, the oldest first. */
  get proposing(): readonly IAgentSession[] {
    return this._proposing;
  }

  /** Null until the server has told. */
  get policy(): IApprovalPolicy | null {
    return this._policy;
  }

  get paused(): IApprovalList['paused'] {
    return this._paused;
  }

  /** The copies of the record that fail, or that stop all code. */
  get sinks(): IApprovalList['sinks'] {
    return this._sinks;
  }

  /** Why the record is not signed any more; null while it is. */
  get broken(): IApprovalList['broken'] {
    return this._broken;
  }

  /** Whether a decision takes the server's passphrase. */
  get needsPassphrase(): boolean {
    return this._needsPassphrase;
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

  /** Something asks that this page did not know to ask. */
  get asked(): ISignal<this, IExecution> {
    return this._asked;
  }

  /** The status of an execution may be another; emits its ID. */
  get progressed(): ISignal<this, string> {
    return this._progressed;
  }

  /** The server was away and is back: what it told meanwhile was missed. */
  get reconnected(): ISignal<this, void> {
    return this._reconnected;
  }

  override dispose(): void {
    this._lost.disconnect(this.refresh, this);
    clearTimeout(this._later);
    super.dispose();
  }

  /** What an execution asks; null if it does not. */
  get(executionId: string): IExecution | null {
    return this._asking.find(({ id }) => id === executionId) ?? null;
  }

  /** Let it run; `grant` lets its agent run more, `source` runs instead. */
  approve(
    { id, source_sha256 }: IExecution,
    source?: string,
    grant?: GrantSpan
  ): Promise<void> {
    const approval = this._api.approve(id, source_sha256, source, grant);
    return this._decide(id, approval);
  }

  reject({ id }: IExecution, reason: string | null): Promise<void> {
    return this._decide(id, this._api.reject(id, reason));
  }

  /** Let a session's agent ask again before it runs code in that kernel. */
  async withdraw(sessionId: string): Promise<void> {
    await this._api.withdrawGrant(sessionId);
  }

  async setPaused(paused: boolean): Promise<void> {
    this._take(await this._api.setPaused(paused));
  }

  async setPolicy(
    policy: Partial<Omit<IApprovalPolicy, 'forced'>>
  ): Promise<void> {
    this._take(await this._api.setPolicy(policy));
  }

  /** Ask for a look at the server. */
  refresh(): void {
    this._gone.clear();
    this.request();
  }

  /** The page had lost the server for a while: read again, and tell others. */
  recover(): void {
    this._retry ||= FIRST_RETRY;
    this.refresh();
  }

  private async _decide(
    id: string,
    decision: Promise<IExecution>
  ): Promise<void> {
    try {
      await decision;
    } catch (error) {
      if (error instanceof ApiError && error.failure === 'refused') {
        // It is not as this page knew: whoever shows it has to see that now.
        await this.read();
      }
      throw error;
    }
    this._leave(id);
  }

  protected onEvent(event: IActivityEvent, complete: boolean): void {
    if (!complete) {
      this.refresh();
    }
    const { action, execution_id, session_id, status } = event;
    if (execution_id && status) {
      this._progressed.emit(execution_id);
    }
    if (action === 'approvals' || action === 'proposals') {
      this.request();
    } else if (execution_id && status === 'awaiting_approval') {
      this._gone.delete(execution_id);
      this.request();
    } else if (execution_id && status && this.get(execution_id)) {
      this._leave(execution_id);
    } else if (
      this._asking.some(each => each.session_id === session_id) ||
      this._proposing.some(({ id }) => id === session_id)
    ) {
      this.request(); // more may wait for the decision, or it was moved
    }
  }

  protected async read(): Promise<void> {
    clearTimeout(this._later);
    try {
      this._take(await this._api.getApprovals());
      this._tellReconnected();
    } catch (error) {
      // Nobody asked for this in so many words; what people do ask for says
      // what is wrong.
      if (error instanceof ApiError && error.failure === 'unreachable') {
        this._retry = Math.min(this._retry * 2 || FIRST_RETRY, LAST_RETRY);
        this._lookIn(this._retry);
      }
    }
  }

  /** Tell that the server is back, and once more when its events must be. */
  private _tellReconnected(): void {
    const isBack = this._retry > 0;
    if (isBack) {
      this._retry = 0;
      this._lookIn(EVENTS_BACK);
    }
    if ((isBack || this._awaitsEvents) && !this.isDisposed) {
      this._awaitsEvents = isBack;
      this._reconnected.emit();
    }
  }

  /** Look later, if the page can be seen then: it looks when it is shown. */
  private _lookIn(delay: number): void {
    if (!this.isDisposed) {
      this._later = setTimeout(() => {
        if (!document.hidden) {
          this.request();
        }
      }, delay);
    }
  }

  private _take(told: IApprovalList): void {
    const { executions, sinks } = told;
    if (this.isDisposed) {
      return;
    }
    const known = new Set(this._asking.map(({ id }) => id));
    this._asking = executions.filter(({ id }) => !this._gone.has(id));
    this._paused = told.paused;
    this._needsPassphrase = told.needs_passphrase;
    this._policy = told.policy;
    this._proposing = told.proposing;
    this._sinks = sinks;
    this._broken = told.broken;
    const listed = new Set(executions.map(({ id }) => id));
    this._gone.forEach(id => listed.has(id) || this._gone.delete(id));
    const fails = sinks.length > 0 || told.broken !== null;
    const isShown = this._asking.length > 0 || fails;
    this.recheck(isShown, () => this.refresh());
    this.emitChanged();
    this._asking
      .filter(({ id }) => !known.has(id))
      .forEach(execution => this._asked.emit(execution));
  }

  /** Something asks no more, whatever an answer that is on its way says. */
  private _leave(executionId: string): void {
    this._gone.add(executionId);
    this._asking = this._asking.filter(({ id }) => id !== executionId);
    this.emitChanged();
  }

  private _asking: readonly IExecution[] = [];
  /** Whether the server is back, and its events may not be. */
  private _awaitsEvents = false;
  private _broken: IApprovalList['broken'] = null;
  /** What the user makes of sources, by what was asked. */
  private readonly _drafts = new Map<string, string>();
  /** What was decided, and may still be in an answer that is on its way. */
  private readonly _gone = new Set<string>();
  private _later: ReturnType<typeof setTimeout> | undefined;
  private _paused: IApprovalList['paused'] = null;
  private _needsPassphrase = false;
  private _policy: IApprovalPolicy | null = null;
  private _proposing: readonly IAgentSession[] = [];
  private _retry = 0;
  private _sinks: IApprovalList['sinks'] = [];
  private _asked = new Signal<this, IExecution>(this);
  private _edited = new Signal<this, void>(this);
  private _progressed = new Signal<this, string>(this);
  private _reconnected = new Signal<this, void>(this);
}
