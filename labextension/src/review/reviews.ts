/** What people think of the executions that notebooks show. */
import { ApiError } from '../api/errors';
import type { ILiveModel } from '../tokens';
import { isFinal } from '../wire';
import type { IActivityEvent, ICellRecord, IReview, Status } from '../wire';
import { Coalescer } from '../live/coalescer';
import { Observable } from '../live/observable';

/** Executions read at once. */
const PAGE = 100;

/** Milliseconds between two looks at the server while much happens. */
const READ_INTERVAL_MS = 300;

/** What is known of one execution. */
interface IKnown {
  readonly sessionId: string;
  readonly seq: number;
  review: IReview | null;
  undoneBy: string | null;
}

/**
 * Reads reviews of many executions at once, and again when an event tells of
 * one. A notebook may show executions of which this server knows nothing.
 */
export class Reviews extends Observable {
  constructor(private readonly _live: ILiveModel) {
    super();
    _live.heard.connect(this._onHeard, this);
    _live.missed.connect(this.refresh, this);
  }

  override dispose(): void {
    this._reading.dispose();
    super.dispose();
  }

  /** What was said of an execution; null if nothing, or not known yet. */
  get(executionId: string): IReview | null {
    return this._known.get(executionId)?.review ?? null;
  }

  /** Who made the kernel as it was before; null if nobody did. */
  undoneBy(executionId: string): string | null {
    return this._known.get(executionId)?.undoneBy ?? null;
  }

  /** Have what is said of a cell's execution looked up, and kept up to date. */
  look({ execution_id: id, seq, session_id, status }: ICellRecord): void {
    if (seq !== null && isFinal(status) && !this._known.has(id)) {
      this._known.set(id, {
        sessionId: session_id,
        seq,
        review: null,
        undoneBy: null
      });
      this._want(id);
    }
  }

  /** Have what is said of these cells' executions known. */
  read(records: readonly ICellRecord[]): Promise<void> {
    records.forEach(each => this.look(each));
    return this._reading.request(true);
  }

  /** Look all of them up again. */
  refresh(): void {
    this._known.forEach((_, id) => this._want(id));
  }

  private _want(executionId: string): void {
    this._wanted.add(executionId);
    // After all cells of a notebook have been looked at.
    void Promise.resolve().then(() => this._reading.request());
  }

  private _onHeard(
    _: unknown,
    { action, execution_id: id, status }: IActivityEvent
  ): void {
    const over = status === undefined || isFinal(status as Status);
    if (action === 'execution' && id && over && this._known.has(id)) {
      this._want(id);
    }
  }

  private async _read(): Promise<void> {
    const wanted = this._wanted;
    this._wanted = new Set();
    if (wanted.size === 0) {
      return;
    }
    const bySession = new Map<string, number[]>();
    for (const id of wanted) {
      const { sessionId, seq } = this._known.get(id)!;
      bySession.set(sessionId, [...(bySession.get(sessionId) ?? []), seq]);
    }
    for (const [sessionId, seqs] of bySession) {
      try {
        await this._readSession(sessionId, seqs);
      } catch (error) {
        if (error instanceof ApiError && error.failure === 'unreachable') {
          // Together with what the next event asks for.
          wanted.forEach(each => this._wanted.add(each));
          return;
        }
      }
    }
    this.emitChanged();
  }

  private async _readSession(id: string, seqs: number[]): Promise<void> {
    seqs.sort((a, b) => a - b);
    let next: number | undefined = seqs[0];
    while (next !== undefined) {
      const { executions, next_after } = await this._live.api.listExecutions(
        id,
        {
          after: next - 1,
          brief: true,
          limit: PAGE
        }
      );
      for (const { id: executionId, review, undone_by } of executions) {
        const known = this._known.get(executionId);
        if (known) {
          known.review = review;
          known.undoneBy = undone_by ?? null;
        }
      }
      const read = next_after ?? Infinity;
      next = seqs.find(seq => seq > read);
    }
  }

  private readonly _known = new Map<string, IKnown>();
  private readonly _reading = new Coalescer(
    () => this._read(),
    READ_INTERVAL_MS
  );
  private _wanted = new Set<string>();
}
