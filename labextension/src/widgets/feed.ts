/** A list of cells that one can walk through and that follows its end. */
import { Panel } from '@lumino/widgets';
import type { Message } from '@lumino/messaging';
import type { IExecutionModel } from '../tokens';
import { CellWidget } from './cell';

/** Pixels from the end within which a reader counts as being at the end. */
const NEAR_END = 48;

/**
 * The cells of a session, in the order in which they ran.
 *
 * The keys of the ARIA feed pattern move between cells. While the reader is at
 * the end, it stays in view as cells and outputs come.
 */
export class CellFeed extends Panel {
  /**
   * @param _scroller - The element that scrolls.
   * @param _createCell - Makes the cell for an execution.
   */
  constructor(
    private readonly _scroller: HTMLElement,
    private readonly _createCell: (model: IExecutionModel) => CellWidget
  ) {
    super();
    this.addClass('jp-AgentExecFeed');
    this.node.setAttribute('role', 'feed');
    this._observer = new ResizeObserver(() => this._keepEnd());
  }

  override dispose(): void {
    this._observer.disconnect();
    super.dispose();
  }

  /** The cells, in order. */
  get cells(): readonly CellWidget[] {
    return this.widgets as CellWidget[];
  }

  /** Show these executions; a cell that is shown already is kept. */
  setModels(models: readonly IExecutionModel[], total: number): void {
    const wanted = new Set(models);
    for (const cell of this.cells.slice()) {
      if (!wanted.has(cell.model)) {
        cell.dispose();
      }
    }
    models.forEach((model, index) => {
      if (this.cells[index]?.model !== model) {
        this.insertWidget(index, this._createCell(model));
      }
      this.cells[index].node.setAttribute('aria-setsize', String(total));
    });
    this._keepTabStop();
  }

  /** Show the end, and follow it again. */
  goToEnd(): void {
    this._atEnd = true;
    this._keepEnd();
  }

  /** Lead the eye and the keyboard to a cell. */
  reveal(model: IExecutionModel): void {
    const cell = this.cells.find(each => each.model === model);
    if (!cell) {
      return;
    }
    this._atEnd = false;
    this.cells.forEach(each =>
      each.toggleClass('jp-mod-revealed', each === cell)
    );
    cell.node.scrollIntoView({ block: 'center' });
    cell.node.focus({ preventScroll: true });
  }

  handleEvent(event: Event): void {
    switch (event.type) {
      case 'scroll':
        this._onScroll();
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
    this._observer.observe(this.node);
    this._observer.observe(this._scroller);
  }

  protected override onBeforeDetach(msg: Message): void {
    this._scroller.removeEventListener('scroll', this);
    this.node.removeEventListener('keydown', this);
    this.node.removeEventListener('focusin', this);
    this._observer.disconnect();
    super.onBeforeDetach(msg);
  }

  private _onScroll(): void {
    const { scrollHeight, scrollTop, clientHeight } = this._scroller;
    if (scrollHeight === this._height) {
      this._atEnd = scrollHeight - scrollTop - clientHeight <= NEAR_END;
    }
  }

  private _keepEnd(): void {
    this._height = this._scroller.scrollHeight;
    if (this._atEnd) {
      this._scroller.scrollTop = this._height;
    }
  }

  private _onKeyDown(event: KeyboardEvent): void {
    const cells = this.cells;
    const at = cells.findIndex(cell => cell.node === event.target);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const next = {
      ArrowDown: at + 1,
      PageDown: at + 1,
      ArrowUp: at - 1,
      PageUp: at - 1,
      Home: 0,
      End: cells.length - 1
    }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      cells[Math.min(Math.max(next, 0), cells.length - 1)].node.focus();
    }
  }

  private _onFocus(target: Node): void {
    const cell = this.cells.find(each => each.node === target);
    if (cell) {
      this._tabStop = cell;
      this._keepTabStop();
    }
  }

  /** One cell is reached with the Tab key: the one last used, or the last. */
  private _keepTabStop(): void {
    const cells = this.cells;
    const stop =
      this._tabStop && cells.includes(this._tabStop)
        ? this._tabStop
        : cells[cells.length - 1];
    for (const cell of cells) {
      cell.node.tabIndex = cell === stop ? 0 : -1;
    }
  }

  private _atEnd = true;
  private _height = 0;
  private _tabStop: CellWidget | null = null;
  private readonly _observer: ResizeObserver;
}
