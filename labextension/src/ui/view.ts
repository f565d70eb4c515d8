/** What a person sees of a notebook, and that it stays while it changes. */
import type { Cell } from '@jupyterlab/cells';
import type {
  Notebook,
  NotebookViewModel,
  StaticNotebook
} from '@jupyterlab/notebook';
import { cellPlaces, drawLater } from './workarounds';

/** Milliseconds for which a view settles after a change. */
const SETTLE = 500;

/** Milliseconds for which a view may go on moving after a person moved it. */
const SCROLL_MS = 300;

/** Milliseconds within which JupyterLab draws what is scrolled to. */
const DRAWN = 10_000;

/** Frames for which a place has to stay in sight before it is left alone. */
const STAYS = 6;

/** What a person does, anywhere, that takes the view elsewhere. */
const CLICKS = ['pointerdown', 'click'];
const USES = ['wheel', 'touchmove', 'keydown', ...CLICKS];

const CELL = '.jp-Cell';

/** Parts of a cell that stay as they are while others come or go. */
const PARTS =
  '.jp-Cell-inputWrapper, .jp-Cell-outputWrapper, .jp-AgentExecNeighbours';

/** What is in sight, and how far from the top of the page it is. */
interface IAnchor {
  cell: Cell;
  part: Element;
  top: number;
  /** How far the notebook was scrolled then. */
  scrolled: number;
  /** How much further down it was drawn than JupyterLab's model has it. */
  drawn: number;
}

/**
 * Keeps one view of a notebook as the person has it.
 *
 * Whatever comes or goes above what they see: it stays where it is, for as
 * long as JupyterLab takes to draw, unless they scroll meanwhile. A cell that
 * is active stays active when a change has moved it, and when a cell with the
 * keyboard goes, the keyboard stays in the notebook.
 */
export class SteadyView {
  /** The view of a notebook: two would scroll against each other. */
  static of(notebook: Notebook): SteadyView {
    const view = views.get(notebook) ?? new SteadyView(notebook);
    views.set(notebook, view);
    return view;
  }

  constructor(private readonly _notebook: Notebook) {}

  /** Make changes. */
  hold(change: () => void): void {
    const { activeCell, mode } = this._notebook;
    const active = activeCell?.model.id;
    const focused = this._hasFocus;
    if (performance.now() >= this._restsAt) {
      this._anchor ??= this._findAnchor();
    }
    try {
      this._isToDraw = drawLater(this._notebook, change) || this._isToDraw;
    } finally {
      this._activate(active, mode);
      if (focused && !this._hasFocus) {
        this._notebook.activeCell?.node.focus({ preventScroll: true });
      }
      this._settle();
    }
  }

  private get _hasFocus(): boolean {
    return this._notebook.outerNode.contains(document.activeElement);
  }

  /** Make the cell active again that a change has taken the place of. */
  private _activate(id: string | undefined, mode: Notebook['mode']): void {
    const notebook = this._notebook;
    if (notebook.activeCell?.model.id !== id) {
      const index = notebook.widgets.findIndex(cell => cell.model.id === id);
      if (index >= 0) {
        notebook.activeCellIndex = index;
        notebook.mode = mode;
      }
    }
  }

  /**
   * Where a person types, if that is in sight, or else the first that is in
   * sight; null if nothing is, as in a tab that is hidden.
   */
  private _findAnchor(): IAnchor | null {
    const { outerNode, widgets } = this._notebook;
    const { bottom, left, top, width } = outerNode.getBoundingClientRect();
    const editor = document.activeElement?.closest('.cm-editor');
    const typed = editor?.getBoundingClientRect();
    const nodes = [1, 30].map(inset =>
      document.elementFromPoint(left + width / 2, top + inset)
    );
    if (editor && typed && typed.bottom > top && typed.top < bottom) {
      nodes.unshift(editor);
    }
    for (const node of nodes) {
      const shown = node?.closest(CELL);
      const cell = shown && widgets.find(each => each.node === shown);
      if (node && cell) {
        const part = node.closest(PARTS) ?? cell.node;
        const anchor = {
          cell,
          part,
          top: 0,
          scrolled: this._scrolled,
          drawn: 0
        };
        const top = this._topOf(anchor) ?? 0;
        const drawn = part.getBoundingClientRect().top - top;
        return { ...anchor, top, drawn };
      }
    }
    return null;
  }

  /** Follow what is drawn, for a while. */
  private _settle(): void {
    this._until = performance.now() + SETTLE;
    if (this._anchor && this._places.windowingActive) {
      this._correct();
    } // else before it is drawn: to measure now would lay out all cells anew
    if (this._isSettling) {
      return;
    }
    this._isSettling = true;
    for (const use of USES) {
      document.addEventListener(use, this._release, {
        capture: true,
        passive: true
      });
    }
    const follow = () => {
      this._correct();
      const now = performance.now();
      // A click into a cell ends the rest, so it is listened for as long.
      if (now < Math.max(this._until, this._restsAt)) {
        requestAnimationFrame(follow);
        return;
      }
      if (this._isToDraw && !this._notebook.isDisposed) {
        // New cells above get their height only now.
        this._isToDraw = false;
        this._notebook.update();
        this._until = performance.now() + SETTLE;
        requestAnimationFrame(follow);
        return;
      }
      if (now < this._until + DRAWN && this._isDrawingAbove()) {
        requestAnimationFrame(follow);
        return;
      }
      this._correctDrawn();
      this._anchor = null;
      this._isSettling = this._isToDraw = this._isTyping = false;
      for (const use of USES) {
        document.removeEventListener(use, this._release, true);
      }
    };
    requestAnimationFrame(follow);
  }

  /** Whether cells above what is held have yet to get their height. */
  private _isDrawingAbove(): boolean {
    const { widgets } = this._notebook;
    const index = this._anchor ? widgets.indexOf(this._anchor.cell) : 0;
    return (
      index > 0 &&
      !this._places.windowingActive &&
      widgets.slice(0, index).some(cell => cell.isPlaceholder())
    );
  }

  /** Bring the cell back to where it was. */
  private _correct(): void {
    const anchor = this._anchor;
    const top = anchor && this._topOf(anchor);
    if (!anchor || top === null) {
      return;
    }
    const scrolled = this._scrolled - anchor.scrolled;
    if (this._isTyping && Math.abs(top - anchor.top + scrolled) < 1) {
      anchor.top = top; // the keys have scrolled to where they are
    }
    const moved = top - anchor.top;
    if (Math.abs(moved) >= 1) {
      const places = this._places;
      if (places.windowingActive) {
        this._notebook.scrollTo(places.scrollOffset + moved);
      } else {
        this._notebook.outerNode.scrollTop += moved;
      }
    }
    anchor.scrolled = this._scrolled;
  }

  /** Correct at last what JupyterLab's model has estimated. */
  private _correctDrawn(): void {
    const places = this._places;
    if (this._anchor?.part.isConnected && places.windowingActive) {
      const { drawn, part, top } = this._anchor;
      const moved = part.getBoundingClientRect().top - drawn - top;
      this._notebook.scrollTo(places.scrollOffset + moved);
    }
  }

  /** How far from the top of the page something is; null if it is gone. */
  private _topOf({ cell, part }: IAnchor): number | null {
    const { outerNode, widgets } = this._notebook;
    const index = widgets.indexOf(cell);
    if (index < 0) {
      return null;
    }
    const topOf = (node: Element) => node.getBoundingClientRect().top;
    const places = this._places;
    const start = places.windowingActive
      ? topOf(outerNode) + places.getSpan(index, index)[0] - places.scrollOffset
      : topOf(cell.node);
    const isThere = cell.node.contains(part);
    return isThere ? start + topOf(part) - topOf(cell.node) : start;
  }

  /** How far the notebook is scrolled. */
  private get _scrolled(): number {
    const places = this._places;
    return places.windowingActive
      ? places.scrollOffset
      : this._notebook.outerNode.scrollTop;
  }

  /** JupyterLab's own model of where cells are. */
  private get _places(): NotebookViewModel {
    return cellPlaces(this._notebook);
  }

  private _release = ({ target, type }: Event): void => {
    this._isTyping = type === 'keydown';
    if (!this._isTyping) {
      this._anchor = null;
      // Who clicks into a cell is there; from elsewhere, a click may lead on.
      const stays = CLICKS.includes(type) && (target as Element).closest(CELL);
      this._restsAt = stays ? 0 : performance.now() + SCROLL_MS;
    }
  };

  private _anchor: IAnchor | null = null;
  private _isSettling = false;
  private _isToDraw = false;
  /** Whether the last that the person did meanwhile was to press a key. */
  private _isTyping = false;
  private _restsAt = 0;
  private _until = 0;
}

const views = new WeakMap<Notebook, SteadyView>();

/**
 * Bring a cell into view.
 *
 * JupyterLab draws cells only as they come into sight, and corrects where they
 * are as it learns their heights: the place is followed until it stays.
 *
 * @param node - What of the cell is to be seen; it may not be drawn yet.
 */
export async function bringIntoView(
  notebook: StaticNotebook,
  cell: Cell,
  node: HTMLElement = cell.node
): Promise<void> {
  const until = performance.now() + DRAWN;
  for (let stays = 0; stays < STAYS && performance.now() < until; stays++) {
    const index = notebook.widgets.indexOf(cell);
    if (index < 0) {
      return;
    }
    if (!cell.isAttached || cell.isPlaceholder()) {
      stays = 0;
      if (!cellPlaces(notebook).windowingActive) {
        notebook.renderCellOutputs(index);
      }
      // It may be drawn much later, or another place be scrolled to.
      notebook.scrollToItem(index, 'smart').catch(() => undefined);
    } else if (!node.isConnected || !isInSight(node, notebook.outerNode)) {
      stays = 0;
      (node.isConnected ? node : cell.node).scrollIntoView({
        block: 'nearest'
      });
    }
    await new Promise(requestAnimationFrame);
  }
}

/** Whether a box shows as much of a node as it can. */
function isInSight(node: HTMLElement, box: HTMLElement): boolean {
  const inner = node.getBoundingClientRect();
  const outer = box.getBoundingClientRect();
  const top = Math.max(inner.top, outer.top);
  const seen = Math.min(inner.bottom, outer.bottom) - top;
  return seen >= Math.min(inner.height, outer.height) - 2;
}
