/** What a user looks for in the history, and the cells that match. */
import { Debouncer } from '@lumino/polling';
import type { IAgentExecApi, ISearchHit, ISearchResults } from '../tokens';
import { Observable } from '../live/observable';
import type { LoadState } from '../live/observable';

/** The most matches that are shown. */
const MOST_HITS = 100;

const NOTHING: ISearchResults = { hits: [], next_after: null };

/** Milliseconds in which what is typed is one search. */
const TYPING = 250;

/**
 * Looks for cells in the whole history.
 *
 * Each change of what is looked for makes a new search; answers to earlier
 * ones are dropped, however late they come.
 */
export class SearchModel extends Observable {
  constructor(private readonly _api: IAgentExecApi) {
    super();
    this._typing = new Debouncer(() => void this.refresh(), TYPING);
  }

  /** Words in source, output, error or purpose. */
  get q(): string {
    return this._q;
  }
  set q(q: string) {
    this._q = q;
    this._round++;
    if (this.isSearching) {
      this._state = { phase: 'loading' };
      this.emitChanged();
      void this._typing.invoke().catch(() => undefined);
    } else {
      this._take(NOTHING);
    }
  }

  /** Whether something is looked for. */
  get isSearching(): boolean {
    return this._q.trim() !== '';
  }

  get hits(): readonly ISearchHit[] {
    return this._hits;
  }

  /** Whether older cells match too. */
  get hasMore(): boolean {
    return this._hasMore;
  }

  get state(): LoadState {
    return this._state;
  }

  override dispose(): void {
    this._typing.dispose();
    super.dispose();
  }

  /** Look for nothing any more. */
  clear(): void {
    this.q = '';
  }

  /** Ask the server, again if it was asked before. */
  async refresh(): Promise<void> {
    const round = ++this._round;
    if (!this.isSearching) {
      return;
    }
    try {
      const page = await this._api.search(this._q.trim(), MOST_HITS);
      if (round === this._round) {
        this._take(page);
      }
    } catch (error) {
      if (round === this._round) {
        this._state = { phase: 'error', error };
        this.emitChanged();
      }
    }
  }

  private _take(page: ISearchResults): void {
    this._hits = page.hits;
    this._hasMore = page.next_after !== null;
    this._state = { phase: 'ready' };
    this.emitChanged();
  }

  private readonly _typing: Debouncer;
  private _hasMore = false;
  private _hits: readonly ISearchHit[] = [];
  private _q = '';
  private _round = 0;
  private _state: LoadState = { phase: 'ready' };
}
