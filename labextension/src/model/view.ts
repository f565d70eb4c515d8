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
const REST = 300;

/** Milliseconds within which JupyterLab draws what is scrolled to. */
const DRAWN = 10_000;

/** Frames for which a place has to stay in sight before it is left alone. */
const STAYS = 6;

/** What a person does, anywhere, that takes the view elsewhere. */
const USES = ['wheel', 'touchmove', 'pointerdown', 'click', 'keydown'];

/** A cell in sight, and how far from the top of what is seen it is. */
interface IAnchor {
  cell: Cell;
  top: number;
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

  /** The first cell in sight; null if none is, as in a tab that is hidden. */
  private _findAnchor(): IAnchor | null {
    const { outerNode, widgets } = this._notebook;
    const { left, top, width } = outerNode.getBoundingClientRect();
    for (const inset of [1, 30]) {
      const node = document
        .elementFromPoint(left + width / 2, top + inset)
        ?.closest('.jp-Cell');
      const cell = node && widgets.find(each => each.node === node);
      if (cell) {
        return { cell, top: this._topOf(cell) ?? 0 };
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
      if (performance.now() < this._until) {
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
      this._anchor = null;
      this._isSettling = false;
      this._isToDraw = false;
      for (const use of USES) {
        document.removeEventListener(use, this._release, true);
      }
    };
    requestAnimationFrame(follow);
  }

  /** Bring the cell back to where it was. */
  private _correct(): void {
    const top = this._anchor && this._topOf(this._anchor.cell);
    if (!this._anchor || top === null) {
      return;
    }
    const moved = top - this._anchor.top;
    if (Math.abs(moved) >= 1) {
      const places = this._places;
      if (places.windowingActive) {
        this._notebook.scrollTo(places.scrollOffset + moved);
      } else {
        this._notebook.outerNode.scrollTop += moved;
      }
    }
  }

  /** How far from the top a cell is; null if it is gone. */
  private _topOf(cell: Cell): number | null {
    const { outerNode, widgets } = this._notebook;
    const index = widgets.indexOf(cell);
    if (index < 0) {
      return null;
    }
    const places = this._places;
    if (places.windowingActive) {
      return places.getSpan(index, index)[0] - places.scrollOffset;
    }
    const from = outerNode.getBoundingClientRect().top;
    return cell.node.getBoundingClientRect().top - from;
  }

  /** JupyterLab's own model of where cells are. */
  private get _places(): NotebookViewModel {
    return cellPlaces(this._notebook);
  }

  private _release = ({ type }: Event): void => {
    this._anchor = null;
    // Typing moves nothing by itself, and must not be moved.
    if (type !== 'keydown') {
      this._restsAt = performance.now() + REST;
    }
  };

  private _anchor: IAnchor | null = null;
  private _isSettling = false;
  private _isToDraw = false;
  private _restsAt = 0;
  private _until = 0;
}

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
