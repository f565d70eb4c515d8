/** The images of the chosen session, or of what was searched for. */
import { JSONExt } from '@lumino/coreutils';
import type { ISearch } from '../api/client';
import type { IRecordedImage } from '../wire';
import type { ActivityModel } from './activity';
import { Coalescer } from './coalescer';
import { Observable } from './observable';
import type { LoadState } from './observable';
import type { SearchModel } from './search';
import type { SessionModel } from './session';

/** Images fetched at once; their data is read when they come into view. */
export const IMAGES_PAGE = 60;

/** Milliseconds between two looks at the server while much happens. */
const REST = 1000;

/** Keeps a list of images in step with what is chosen or searched for. */
export class GalleryModel extends Observable {
  constructor(
    private readonly _activity: ActivityModel,
    private readonly _search: SearchModel
  ) {
    super();
    this._reading = new Coalescer(() => this._read(), REST);
    _activity.selectedChanged.connect(this._onSelected, this);
    _search.changed.connect(this._follow, this);
    this._onSelected();
  }

  /** The images that are known so far. */
  get images(): readonly IRecordedImage[] {
    return this._images;
  }

  get hasMore(): boolean {
    return this._nextAfter !== null;
  }

  get state(): LoadState {
    return this._state;
  }

  /** Whether the images are those of a search; else of the chosen session. */
  get isOfSearch(): boolean {
    return this._search.search !== null;
  }

  /** Whether somebody looks; nothing is fetched while nobody does. */
  get isActive(): boolean {
    return this._isActive;
  }
  set isActive(value: boolean) {
    this._isActive = value;
    if (value) {
      this._request();
    }
  }

  override dispose(): void {
    this._reading.dispose();
    this._activity.selectedChanged.disconnect(this._onSelected, this);
    this._search.changed.disconnect(this._follow, this);
    this._session?.changed.disconnect(this._onSessionChanged, this);
    super.dispose();
  }

  /** Begin anew. */
  refresh(): void {
    this._last = { after: null, start: 0 };
    this._request();
  }

  async loadMore(): Promise<void> {
    const after = this._nextAfter;
    const of = this._of;
    if (after === null || of === null) {
      return;
    }
    const { api } = this._activity;
    const page = await api.listImages(of, after, IMAGES_PAGE);
    if (of === this._of && after === this._nextAfter && !this.isDisposed) {
      this._last = { after, start: this._images.length };
      this._take(page.images, page.next_after);
    }
  }

  private _onSelected(): void {
    this._session?.changed.disconnect(this._onSessionChanged, this);
    this._session = this._activity.selected;
    this._session?.changed.connect(this._onSessionChanged, this);
    this._follow();
  }

  private _onSessionChanged({ session }: SessionModel): void {
    const length = session?.chain.length ?? null;
    if (length !== this._length && !this.isOfSearch) {
      this._length = length;
      this._request();
    }
  }

  /** Begin anew if the images are to be of something else. */
  private _follow(): void {
    const session = this._session && { session_id: this._session.id };
    const of = this._search.search ?? session;
    if (JSONExt.deepEqual(of as never, this._of as never)) {
      return;
    }
    this._of = of;
    this._length = this._session?.session?.chain.length ?? null;
    this._images = [];
    this._last = { after: null, start: 0 };
    this._nextAfter = null;
    this._state = { phase: of ? 'loading' : 'ready' };
    this.emitChanged();
    this._request();
  }

  private _request(): void {
    if (this._isActive && this._of) {
      this._reading.request();
    }
  }

  /** Read the last page again, and so what came after it. */
  private async _read(): Promise<void> {
    const { _last: last, _of: of } = this;
    if (of === null) {
      return;
    }
    try {
      const { api } = this._activity;
      const page = await api.listImages(of, last.after, IMAGES_PAGE);
      if (of === this._of && last === this._last) {
        this._state = { phase: 'ready' };
        this._take(page.images, page.next_after);
      }
    } catch (error) {
      if (of === this._of) {
        this._state = { phase: 'error', error };
        this.emitChanged();
      }
    }
  }

  /** Take the last page. */
  private _take(images: IRecordedImage[], nextAfter: string | null): void {
    this._images = this._images.slice(0, this._last.start).concat(images);
    this._nextAfter = nextAfter;
    this.emitChanged();
  }

  private readonly _reading: Coalescer;
  private _images: IRecordedImage[] = [];
  private _isActive = false;
  /** How much of the chosen session was known at the last look. */
  private _length: number | null = null;
  /** How the last page is asked for, and where it begins. */
  private _last: { after: string | null; start: number } = {
    after: null,
    start: 0
  };
  private _nextAfter: string | null = null;
  private _of: ISearch | null = null;
  private _session: SessionModel | null = null;
  private _state: LoadState = { phase: 'ready' };
}
