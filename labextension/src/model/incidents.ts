/** What happened to agents that a person did not see coming. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { IDisposable } from '@lumino/disposable';
import type { IAgentExecApi } from '../api/client';
import type { AgentsAtWork } from './atwork';
import type { IActivityEvent, IExecution, IJournalEvent } from '../wire';

/** Entries looked through for the one that says who stopped an agent. */
const ENTRIES = 50;

/** Milliseconds by which clocks may differ without a word of it. */
const TOLERANCE = 2000;

/** Why an agent is interrupted, when it is not part of something else. */
const STOPPING = ['asked', 'cancelled'];

/** A kernel died, or somebody stopped an agent. */
export interface IIncident {
  kind: Incidents.Kind;
  execution: IExecution;
  /** Who stopped it; null if that is not known. */
  by: string | null;
}

/** Notices, once each, that a kernel died and that an agent was stopped. */
export class Incidents implements IDisposable {
  /**
   * @param _api - The server.
   * @param _atWork - Tells what has ended, and what this page has stopped.
   * @param _isWanted - Whether anybody wants to know.
   */
  constructor(
    private readonly _api: IAgentExecApi,
    private readonly _atWork: AgentsAtWork,
    private readonly _isWanted: (kind: Incidents.Kind) => boolean
  ) {
    _atWork.ended.connect(this._onEnded, this);
  }

  /** One has happened. */
  get happened(): ISignal<this, IIncident> {
    return this._happened;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._atWork.ended.disconnect(this._onEnded, this);
    Signal.clearData(this);
  }

  private _onEnded(_: unknown, event: IActivityEvent): void {
    const { execution_id, status } = event;
    const kind = kindOf(status);
    if (execution_id && kind && this._isWanted(kind)) {
      // A review or a late output tells again how it had ended.
      if (!this._known.has(execution_id)) {
        this._known.add(execution_id);
        void this._look(kind, execution_id, event);
      }
    }
  }

  private async _look(
    kind: Incidents.Kind,
    executionId: string,
    event: IActivityEvent
  ): Promise<void> {
    try {
      const execution = await this._api.getExecution(executionId);
      if (this._isOld(execution)) {
        return;
      }
      if (kind === 'died') {
        this._tell({ kind, execution, by: null }, kernelOf(execution));
      } else if (!this._atWork.hasStopped(executionId)) {
        const entry = await this._findStop(execution, event.length);
        const isMeant = entry === null || STOPPING.includes(entry.text ?? '');
        if (isMeant && entry?.by !== execution.agent.name) {
          const by = entry?.by ?? null;
          this._tell({ kind, execution, by }, executionId);
        }
      }
    } catch {
      // The panel says what is wrong with the server.
    }
  }

  /** Whether it had ended before this page was there. */
  private _isOld({ finished_at }: IExecution): boolean {
    const since = this._since + this._api.clockOffset - TOLERANCE;
    return finished_at === null || Date.parse(finished_at) < since;
  }

  /** What the record says of who interrupted it; null if nobody asked for it. */
  private async _findStop(
    { id, session_id }: IExecution,
    length: number
  ): Promise<IJournalEvent | null> {
    const after = Math.max(0, length - ENTRIES);
    const { events } = await this._api.listEvents(session_id, after, ENTRIES);
    return (
      events.find(
        ({ execution_id, type }) =>
          type === 'interrupted' && execution_id === id
      ) ?? null
    );
  }

  private _tell(incident: IIncident, what: string): void {
    if (!this._isDisposed && !this._told.has(what)) {
      this._told.add(what);
      this._happened.emit(incident);
    }
  }

  private _isDisposed = false;
  /** Executions that were looked at. */
  private readonly _known = new Set<string>();
  private readonly _since = Date.now();
  /** Kernels' lives and executions that were told of. */
  private readonly _told = new Set<string>();
  private _happened = new Signal<this, IIncident>(this);
}

/** What incidents are. */
export namespace Incidents {
  /** A kernel died, or somebody stopped an agent. */
  export type Kind = 'died' | 'stopped';
}

/** What it means that an execution ended so; null for nothing unexpected. */
function kindOf(status: string | undefined): Incidents.Kind | null {
  switch (status) {
    case 'kernel_died':
      return 'died';
    case 'interrupted':
      return 'stopped';
    default:
      return null;
  }
}

/** The life of a kernel in which something ran. */
function kernelOf({ id, kernel }: IExecution): string {
  return kernel ? `${kernel.id} ${kernel.incarnation}` : id;
}
