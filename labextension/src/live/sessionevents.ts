/** What happened between a session's cells. */
import type { IAgentExecApi } from '../api/client';
import type { IJournalEvent } from '../wire';

/** Entries fetched at once. */
export const EVENTS_PAGE = 500;

const NONE: readonly IJournalEvent[] = [];

/** Keeps the entries of a session that are not executions. */
export class SessionEvents {
  constructor(
    private readonly _id: string,
    private readonly _api: IAgentExecApi
  ) {}

  /** Those after an execution and before the next; the same array if none came. */
  after(seq: number): readonly IJournalEvent[] {
    return this._bySeq.get(seq) ?? NONE;
  }

  /**
   * Read those that have come since the last time.
   *
   * @param took - Called with each page.
   */
  async read(took: (events: readonly IJournalEvent[]) => void): Promise<void> {
    let more = true;
    while (more) {
      const { events, next_after } = await this._api.listEvents(
        this._id,
        this._last,
        EVENTS_PAGE
      );
      if (events.length > 0) {
        this._take(events);
        took(events);
      }
      more = next_after !== null;
    }
  }

  private _take(events: readonly IJournalEvent[]): void {
    for (const event of events) {
      const known = this._bySeq.get(event.after_seq) ?? NONE;
      this._bySeq.set(event.after_seq, [...known, event]);
      this._last = event.n;
    }
  }

  private readonly _bySeq = new Map<number, readonly IJournalEvent[]>();
  private _last: number | null = null;
}
