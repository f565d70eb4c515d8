/** What a person looks for in the history, and the cells that match. */
import { Debouncer } from '@lumino/polling';
import type { ISearch } from '../api/client';
import type { IIndexing, ISearchHit, ISearchResults } from '../wire';
import type { ActivityModel } from './activity';
import { ANYTHING, cellSearch, looksForCells, sessionFilter } from './criteria';
import type { ICriteria } from './criteria';
import { Observable } from './observable';
import type { LoadState } from './observable';

/** Matches fetched at once. */
export const HITS_PAGE = 30;

const NOTHING: ISearchResults = { hits: [], next_after: null, indexing: null };

/** Milliseconds in which what is typed is one search. */
const TYPING = 250;

/**
 * Looks for cells in the whole history, or else for sessions of the list.
 *
 * Each change of what is looked for makes a new search; answers to earlier
 * ones are dropped, however late they come.
 */
export class SearchModel extends Observable {
  constructor(private readonly _activity: ActivityModel) {
    super();
    this._typing = new Debouncer(() => void this._look(), TYPING);
  }

  /** What is looked for. */
  get criteria(): ICriteria {
    return this._criteria;
  }
  set criteria(criteria: ICriteria) {
    this._criteria = criteria;
    this._round++;
    if (this.isSearching) {
      this._state = { phase: 'loading' };
      this.emitChanged();
    } else {
      this._take(null, NOTHING);
    }
    void this._typing.invoke().catch(() => undefined);
  }

  /** Whether cells are looked for; else the list of sessions shows which. */
  get isSearching(): boolean {
    return looksForCells(this._criteria);
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

  /** Look for no cells, and show the list of sessions again. */
  leave(): void {
    const { hasImage, q, review, status } = ANYTHING;
    this.criteria = { ...this._criteria, hasImage, q, review, status };
  }

  /** Look for anything again. */
  clear(): void {
    this.criteria = ANYTHING;
  }

  /** Ask again what was asked last. */
  async refresh(): Promise<void> {
    await this._look();
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

  private async _look(): Promise<void> {
    const round = ++this._round;
    if (!this.isSearching) {
      this._activity.filter = sessionFilter(this._criteria, new Date());
      return;
    }
    const search = cellSearch(this._criteria, new Date());
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
  private _criteria = ANYTHING;
  private _hits: ISearchHit[] = [];
  private _indexing: IIndexing | null = null;
  private _loadingMore = false;
  private _nextAfter: string | null = null;
  private _round = 0;
  private _search: ISearch | null = null;
  private _state: LoadState = { phase: 'ready' };
}
