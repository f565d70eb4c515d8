/** What a person sees of a notebook, and that it stays while it changes. */
import type { Notebook } from '@jupyterlab/notebook';

/** Milliseconds for which a view settles after a change. */
const SETTLE = 500;

/** What a person does that takes the view elsewhere. */
const USES = ['wheel', 'pointerdown', 'keydown', 'touchmove'];

/** Something in sight, and how far from the top of the screen it is. */
interface IAnchor {
  node: Element;
  top: number;
}

/** The first cell in sight; null if none is, as in a tab that is hidden. */
function findAnchor(scroller: HTMLElement): IAnchor | null {
  const { left, top, width } = scroller.getBoundingClientRect();
  for (const inset of [1, 30]) {
    const node = document
      .elementFromPoint(left + width / 2, top + inset)
      ?.closest('.jp-Cell');
    if (node && scroller.contains(node)) {
      return { node, top: node.getBoundingClientRect().top };
    }
  }
  return null;
}

/**
 * Keeps one view of a notebook as the person has it.
 *
 * Whatever comes or goes above what they see: it stays where it is, for as
 * long as JupyterLab takes to draw, unless they scroll meanwhile. A cell that
 * is active stays active when a change has moved it.
 */
export class SteadyView {
  constructor(private readonly _notebook: Notebook) {}

  /** Make changes. */
  hold(change: () => void): void {
    const { activeCell, mode, outerNode } = this._notebook;
    const active = activeCell?.model.id;
    this._anchor ??= findAnchor(outerNode);
    try {
      change();
    } finally {
      this._activate(active, mode);
      this._settle();
    }
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

  /** Follow what is drawn, for a while. */
  private _settle(): void {
    this._until = performance.now() + SETTLE;
    if (!this._anchor || this._isSettling) {
      return;
    }
    this._isSettling = true;
    const { outerNode } = this._notebook;
    for (const use of USES) {
      outerNode.addEventListener(use, this._release, { passive: true });
    }
    const follow = () => {
      this._correct(outerNode);
      if (this._anchor && performance.now() < this._until) {
        requestAnimationFrame(follow);
        return;
      }
      this._release();
      this._isSettling = false;
      for (const use of USES) {
        outerNode.removeEventListener(use, this._release);
      }
    };
    requestAnimationFrame(follow);
  }

  private _correct(scroller: HTMLElement): void {
    if (this._anchor?.node.isConnected) {
      const { node, top } = this._anchor;
      const moved = node.getBoundingClientRect().top - top;
      if (Math.abs(moved) >= 1) {
        scroller.scrollTop += moved;
      }
    }
  }

  private _release = (): void => {
    this._anchor = null;
  };

  private _anchor: IAnchor | null = null;
  private _isSettling = false;
  private _until = 0;
}
