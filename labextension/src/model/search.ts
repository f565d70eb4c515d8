/** What a user looks for in the history, and the cells that match. */
import { Debouncer } from '@lumino/polling';
import type { ISearch } from '../api/client';
import type { IIndexing, ISearchHit, ISearchResults } from '../wire';
import type { ActivityModel } from './activity';
import { Observable } from './observable';
import type { LoadState } from './observable';

/** Matches fetched at once. */
export const HITS_PAGE = 30;

const NOTHING: ISearchResults = { hits: [], next_after: null, indexing: null };

/** Milliseconds in which what is typed is one search. */
const TYPING = 250;

/** What each choice of cells asks the server for. */
const CELLS = {
  '': {},
  approval: { status: 'awaiting_approval' },
  error: { status: 'error' },
  unreviewed: { review: 'none' },
  flagged: { review: 'flagged' },
  images: { has_image: true }
} as const satisfies Record<string, ISearch>;

/** What a user looks for, as the form has it; empty for anything. */
export interface ICriteria {
  /** Words in source, output or error. */
  q: string;
  agent: string;
  cells: keyof typeof CELLS;
  /** Of how many days, today included. */
  days: '' | '1' | '7';
}

/** Looks for nothing in particular. */
export const ANYTHING: ICriteria = { q: '', agent: '', cells: '', days: '' };

/** How many of the form's fields say something, apart from the words. */
export function countFilters({ agent, cells, days }: ICriteria): number {
  return [agent, cells, days].filter(Boolean).length;
}

/** What the server is asked for, whose days may be others than the user's. */
export function searchFor(
  { agent, cells, days, q }: ICriteria,
  now: Date
): ISearch {
  const words = q.trim();
  const start = new Date(now);
  start.setDate(start.getDate() - Number(days) + 1);
  start.setHours(0, 0, 0, 0);
  return {
    ...(words && { q: words }),
    ...(agent && { agent }),
    ...(days && { since: start.toISOString() }),
    ...CELLS[cells]
  };
}

/**
 * Looks for cells in the whole history.
 *
 * Each change of what is looked for makes a new search; answers to earlier
 * ones are dropped, however late they come.
 */
export class SearchModel extends Observable {
  constructor(private readonly _activity: ActivityModel) {
    super();
    this._typing = new Debouncer(() => void this.refresh(), TYPING);
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
      void this._typing.invoke().catch(() => undefined);
    } else {
      this._take(null, NOTHING);
    }
  }

  /** Whether something is looked for. */
  get isSearching(): boolean {
    const { _criteria: criteria } = this;
    return criteria.q.trim() !== '' || countFilters(criteria) > 0;
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
    this.criteria = ANYTHING;
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
    const search = searchFor(this._criteria, new Date());
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
