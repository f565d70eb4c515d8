/** A list of cells that one can walk through and that follows its end. */
import { Panel, Widget } from '@lumino/widgets';
import type { Message } from '@lumino/messaging';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IExecutionModel, ISessionModel } from '../tokens';
import { CellWidget } from './cell';
import { Heights } from './heights';

/** Pixels from the end within which a reader counts as being at the end. */
const NEAR_END = 48;

/** Milliseconds spent on making cells before the page may draw. */
const BUDGET = 8;

type Row = CellWidget | Placeholder;

/**
 * The cells of a session, in the order in which they ran.
 *
 * Only those near what can be seen are drawn. The keys of the ARIA feed
 * pattern move between cells. While the reader is at the end, it stays in view
 * as cells and outputs come; else what is read stays where it is.
 */
export class CellFeed extends Panel {
  /**
   * @param _scroller - The element that scrolls.
   * @param _session - The session.
   * @param _createCell - Makes the cell for an execution.
   * @param _trans - Translates what is said.
   */
  constructor(
    private readonly _scroller: HTMLElement,
    private readonly _session: ISessionModel,
    private readonly _createCell: (model: IExecutionModel) => CellWidget,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecFeed');
    this._observer = new ResizeObserver(entries => this._onResize(entries));
    _session.changed.connect(this._render, this);
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._observer.disconnect();
    cancelAnimationFrame(this._frame);
    super.dispose();
  }

  /** The cells that are drawn, in order. */
  get cells(): readonly CellWidget[] {
    return this._rows.filter(row => row instanceof CellWidget);
  }

  /** Lead the eye and the keyboard to a cell. */
  reveal(seq: number): void {
    this._revealed = seq;
    this._sought = seq;
    this._render();
  }

  handleEvent(event: Event): void {
    switch (event.type) {
      case 'scroll':
        this._render();
        break;
      case 'keydown':
        this._onKeyDown(event as KeyboardEvent);
        break;
      case 'focusin':
        this._onFocus(event.target as Node);
        break;
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._scroller.addEventListener('scroll', this, { passive: true });
    this.node.addEventListener('keydown', this);
    this.node.addEventListener('focusin', this);
    this._observer.observe(this._scroller);
    // What stands above may grow.
    this._observer.observe(this.node.parentElement ?? this.node);
    this._render();
  }

  protected override onBeforeDetach(msg: Message): void {
    this._scroller.removeEventListener('scroll', this);
    this.node.removeEventListener('keydown', this);
    this.node.removeEventListener('focusin', this);
    this._observer.disconnect();
    super.onBeforeDetach(msg);
  }

  private get _rows(): readonly Row[] {
    return this.widgets as Row[];
  }

  private get _isHidden(): boolean {
    return !this.isAttached || this._scroller.clientHeight === 0;
  }

  /** Pixels of the feed above what can be seen; negative if there is more above. */
  private get _offset(): number {
    const { top } = this._scroller.getBoundingClientRect();
    return top - this.node.getBoundingClientRect().top;
  }

  /** Take notice of where the reader has scrolled; its event may come later. */
  private _noteScroll(): void {
    const { clientHeight, scrollHeight, scrollTop } = this._scroller;
    if (scrollHeight === this._scrollHeight) {
      this._atEnd = scrollHeight - scrollTop - clientHeight <= NEAR_END;
    }
    if (Math.abs(scrollTop - this._scrolledTo) >= 1) {
      this._scrolledTo = scrollTop;
      this._remember();
    }
  }

  /** Remember what is at the top, so that it can be kept there. */
  private _remember(): void {
    const offset = this._offset;
    const seq = this._heights.at(offset);
    const below = offset - this._heights.top(seq);
    this._anchor = offset > 0 && seq > 0 ? { seq, below } : null;
  }

  /** Bring the rows in line with what can be seen and what is known. */
  private _render(): void {
    if (this._isHidden) {
      return;
    }
    this._noteScroll();
    const heights = this._heights;
    heights.count = this._session.last;
    if (heights.count === 0) {
      return; // a feed without articles is none
    }
    this.node.setAttribute('role', 'feed');
    if (this._sought !== null) {
      const seq = this._sought;
      this._sought = null;
      this._goTo(seq, 'center');
      return;
    }
    if (this._extend()) {
      this._keepPlace();
    }
    const offset = this._offset;
    const { clientHeight } = this._scroller;
    const held = this._rows.filter(isHeld).map(({ seq }) => seq);
    const wanted = new Set(held);
    const last = heights.at(offset + 2 * clientHeight);
    for (let seq = heights.at(offset - clientHeight); seq <= last; seq++) {
      if (this._session.isAbsent(seq)) {
        heights.measure(seq, 0);
      } else {
        wanted.add(seq);
      }
    }
    this._setRows(wanted);
    const first = heights.at(offset);
    this._session.look(first, heights.at(offset + clientHeight), held);
    this._fill(first);
    this._place();
    this._keepTabStop();
  }

  /** Make room for all rows; tells whether there was less or more. */
  private _extend(): boolean {
    const height = `${this._heights.total}px`;
    const differs = this.node.style.height !== height;
    this.node.style.height = height;
    return differs;
  }

  /** Have a row for each of these, and no others. */
  private _setRows(wanted: ReadonlySet<number>): void {
    const known = new Set<number>();
    for (const row of this._rows.slice()) {
      if (wanted.has(row.seq)) {
        known.add(row.seq);
      } else {
        row.dispose();
      }
    }
    for (const seq of wanted) {
      if (!known.has(seq)) {
        this._insert(new Placeholder(seq, this._trans));
      }
    }
  }

  private _insert(row: Row): void {
    const { node, seq } = row;
    const at = this._rows.findIndex(each => each.seq > seq);
    node.setAttribute('aria-posinset', String(seq));
    node.tabIndex = -1;
    if (row instanceof CellWidget && seq === this._revealed) {
      this._revealed = null;
      row.addClass('jp-mod-revealed');
    }
    this.insertWidget(at < 0 ? this._rows.length : at, row);
    this._observer.observe(node);
  }

  /** Draw what is known, as much as there is time for, first what is in sight. */
  private _fill(first: number): void {
    const end = performance.now() + BUDGET;
    cancelAnimationFrame(this._frame);
    const rows = this._rows;
    const above = rows.filter(({ seq }) => seq < first).reverse();
    for (const row of [...rows.filter(({ seq }) => seq >= first), ...above]) {
      const model = this._session.at(row.seq);
      const isStale = !(row instanceof CellWidget) || row.model !== model;
      if (model && isStale && performance.now() > end) {
        this._frame = requestAnimationFrame(() => this._render());
        return;
      }
      if (model && isStale) {
        this._replace(row, this._createCell(model));
      }
    }
  }

  private _replace(row: Row, cell: CellWidget): void {
    const hadFocus = row.node.contains(document.activeElement);
    row.dispose();
    this._insert(cell);
    if (hadFocus) {
      cell.node.focus({ preventScroll: true });
    }
  }

  /** Put each row where it belongs. */
  private _place(): void {
    const total = String(this._session.last);
    let top = 0;
    let before = 1;
    for (const row of this._rows) {
      top += this._heights.between(before, row.seq);
      before = row.seq;
      row.node.style.top = `${top}px`;
      row.node.setAttribute('aria-setsize', total);
      if (row instanceof CellWidget) {
        row.setEvents(this._session.eventsAfter(row.seq));
      } else {
        row.node.style.height = `${this._heights.of(row.seq)}px`;
      }
    }
  }

  private _onResize(entries: readonly ResizeObserverEntry[]): void {
    if (this._isHidden) {
      return;
    }
    this._noteScroll();
    const rows = new Map<Element, Row>(this._rows.map(row => [row.node, row]));
    for (const { target } of entries) {
      const row = rows.get(target);
      if (row instanceof CellWidget) {
        this._heights.measure(row.seq, row.node.offsetHeight);
      }
    }
    this._heights.settle();
    this._extend();
    this._keepPlace();
    this._render();
  }

  /** Keep the end in view, or what is read where it is. */
  private _keepPlace(): void {
    const { scrollHeight, scrollTop } = this._scroller;
    this._scrollHeight = scrollHeight;
    if (this._atEnd) {
      this._scrollTo(scrollHeight);
    } else if (this._anchor) {
      const { below, seq } = this._anchor;
      const moved = this._heights.top(seq) + below - this._offset;
      if (Math.abs(moved) >= 1) {
        this._scrollTo(scrollTop + moved);
      }
    }
  }

  private _scrollTo(top: number): void {
    this._scroller.scrollTop = top;
    this._scrolledTo = this._scroller.scrollTop;
  }

  /** Bring a row into sight, and the keyboard to it. */
  private _goTo(seq: number, where: 'nearest' | 'center'): void {
    if (this._isHidden) {
      return;
    }
    const heights = this._heights;
    heights.count = this._session.last;
    this._extend();
    const room = this._scroller.clientHeight - heights.of(seq);
    const above = this._offset - heights.top(seq);
    // Pixels that are to be above it, or, if negative, cut off of it.
    const below =
      where === 'center'
        ? Math.max(room / 2, 0)
        : Math.max(Math.min(-above, room), 0);
    this._atEnd = seq === heights.count && where === 'nearest';
    this._anchor = { seq, below: -below };
    this._keepPlace();
    this._render();
    this._rows
      .find(row => row.seq === seq)
      ?.node.focus({ preventScroll: true });
  }

  private _onKeyDown(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    // The page keys lead on from what is in a cell too, but for a text.
    const isPageKey = event.key === 'PageDown' || event.key === 'PageUp';
    const row = this._rows.find(({ node }) =>
      isPageKey && !target.closest('textarea')
        ? node.contains(target)
        : node === target
    );
    if (!row || event.metaKey || event.altKey) {
      return;
    }
    if (event.ctrlKey) {
      if (event.key === 'Home' || event.key === 'End') {
        event.preventDefault();
        event.stopPropagation();
        leaveFeed(this.node, event.key === 'End');
      }
      return;
    }
    const next = {
      ArrowDown: this._next(row.seq, 1),
      PageDown: this._next(row.seq, 1),
      ArrowUp: this._next(row.seq, -1),
      PageUp: this._next(row.seq, -1),
      Home: this._next(0, 1),
      End: this._next(this._session.last + 1, -1)
    }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      this._goTo(next, 'nearest');
    }
  }

  /** The number of the cell before or after; the same at either end. */
  private _next(seq: number, step: 1 | -1): number {
    const { last } = this._session;
    let next = seq + step;
    while (next >= 1 && next <= last && this._session.isAbsent(next)) {
      next += step;
    }
    return next >= 1 && next <= last ? next : seq;
  }

  private _onFocus(target: Node): void {
    const row = this._rows.find(({ node }) => node === target);
    if (row) {
      this._tabStop = row.seq;
      this._keepTabStop();
    }
  }

  /** One cell is reached with the Tab key: the one last used, or the last. */
  private _keepTabStop(): void {
    const rows = this._rows;
    const stop =
      rows.find(({ seq }) => seq === this._tabStop) ?? rows[rows.length - 1];
    for (const row of rows) {
      row.node.tabIndex = row === stop ? 0 : -1;
    }
  }

  /** A cell, and how far below its top the view begins. */
  private _anchor: { seq: number; below: number } | null = null;
  private _atEnd = true;
  private _frame = 0;
  private readonly _heights = new Heights();
  private readonly _observer: ResizeObserver;
  private _revealed: number | null = null;
  private _scrolledTo = 0;
  /** A cell to lead to as soon as the feed can be seen. */
  private _sought: number | null = null;
  private _scrollHeight = 0;
  private _tabStop: number | null = null;
}

/** Whether a row stays though it is out of sight: somebody may be writing there. */
function isHeld(row: Row): boolean {
  return (
    row.node.contains(document.activeElement) ||
    (row instanceof CellWidget &&
      row.model.execution.status === 'awaiting_approval')
  );
}

/** A place in the feed for an execution that is not known, or not drawn yet. */
class Placeholder extends Widget {
  constructor(
    readonly seq: number,
    trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecCell');
    this.addClass('jp-mod-placeholder');
    this.node.setAttribute('role', 'article');
    this.node.setAttribute('aria-label', trans.__('Loading…'));
    this.node.setAttribute('aria-busy', 'true');
  }
}

const TABBABLE =
  'a[href], button:not([disabled]), input:not([disabled]), ' +
  'select:not([disabled]), textarea:not([disabled]), summary, [tabindex]';

/** Lead the keyboard to what comes before a feed, or after it, if there is any. */
function leaveFeed(feed: HTMLElement, after: boolean): void {
  const side = after
    ? Node.DOCUMENT_POSITION_FOLLOWING
    : Node.DOCUMENT_POSITION_PRECEDING;
  const found = Array.from(
    document.querySelectorAll<HTMLElement>(TABBABLE)
  ).filter(
    each =>
      each.tabIndex >= 0 &&
      !feed.contains(each) &&
      each.offsetParent !== null &&
      (feed.compareDocumentPosition(each) & side) !== 0
  );
  // What is invisible takes no focus.
  for (const each of after ? found : found.reverse()) {
    each.focus();
    if (document.activeElement === each) {
      return;
    }
  }
}
