/** What a user looks for in the history, and the cells that match. */
import { Debouncer } from '@lumino/polling';
import type {
  IActivityModel,
  IIndexing,
  ISearch,
  ISearchHit,
  ISearchResults
} from '../tokens';
import { Observable } from '../model/observable';
import type { LoadState } from '../model/observable';

/** Matches fetched at once. */
export const HITS_PAGE = 30;

const NOTHING: ISearchResults = { hits: [], next_after: null, indexing: null };

/** Milliseconds in which what is typed is one search. */
const TYPING = 250;

/**
 * Looks for cells in the whole history.
 *
 * Each change of what is looked for makes a new search; answers to earlier
 * ones are dropped, however late they come.
 */
export class SearchModel extends Observable {
  constructor(private readonly _activity: IActivityModel) {
    super();
    this._typing = new Debouncer(() => void this.refresh(), TYPING);
  }

  /** Words in source, output or error. */
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
      this._take(null, NOTHING);
    }
  }

  /** Whether something is looked for. */
  get isSearching(): boolean {
    return this._q.trim() !== '';
  }

  /** What the matches match; null before the first answer. */
  get search(): ISearch | null {
    return this._search;
  }

  get hits(): readonly ISearchHit[] {
    return this._hits;
  }

  /** How far the server has rebuilt its index; null if all was searched. */
  get indexing(): IIndexing | null {
    return this._indexing;
  }

  get hasMore(): boolean {
    return this._nextAfter !== null;
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

  async loadMore(): Promise<void> {
    const { _nextAfter: after, _search: search } = this;
    if (after === null || search === null || this._loadingMore) {
      return;
    }
    this._loadingMore = true;
    try {
      const { api } = this._activity;
      const page = await api.search(search, after, HITS_PAGE);
      if (search === this._search && !this.isDisposed) {
        this._hits = this._hits.concat(page.hits);
        this._nextAfter = page.next_after;
        this.emitChanged();
      }
    } finally {
      this._loadingMore = false;
    }
  }

  /** Ask the server, again if it was asked before. */
  async refresh(): Promise<void> {
    const round = ++this._round;
    if (!this.isSearching) {
      return;
    }
    const search = { q: this._q.trim() };
    try {
      const { api } = this._activity;
      const page = await api.search(search, null, HITS_PAGE);
      if (round === this._round) {
        this._take(search, page);
      }
    } catch (error) {
      if (round === this._round) {
        this._state = { phase: 'error', error };
        this.emitChanged();
      }
    }
  }

  private _take(search: ISearch | null, page: ISearchResults): void {
    this._search = search;
    this._hits = page.hits;
    this._nextAfter = page.next_after;
    this._indexing = page.indexing;
    this._state = { phase: 'ready' };
    this.emitChanged();
  }

  private readonly _typing: Debouncer;
  private _hits: ISearchHit[] = [];
  private _indexing: IIndexing | null = null;
  private _loadingMore = false;
  private _nextAfter: string | null = null;
  private _q = '';
  private _round = 0;
  private _search: ISearch | null = null;
  private _state: LoadState = { phase: 'ready' };
}
