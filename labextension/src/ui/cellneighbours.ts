/** Widgets between the cells of a notebook that are not cells of it. */
import type { Cell } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';
import type { PanelLayout } from '@lumino/widgets';
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { bringIntoView, SteadyView } from './view';
/**
 * The cell beside which a widget stands; the end also if that is gone. It
 * stands after the first of those that it follows, if one is there.
 */
export type Place =
  | 'end'
  | {
      after?: string | null;
      before?: string | null;
      cell?: string | null;
      follows?: readonly string[];
    };

/**
 * Shows widgets at places in a notebook, also while its cells change.
 *
 * A notebook draws only its cells, and not all of them. So each widget stands
 * in the layout of the cell beside it, and moves to another when that one goes.
 */
export class CellNeighbours implements IDisposable {
  constructor(private readonly _notebook: Notebook) {
    this._view = SteadyView.of(_notebook);
    _notebook.modelChanged.connect(this._onModelChanged, this);
    this._onModelChanged();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Dispose of the widgets too. */
  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      Signal.clearData(this);
      this._shown.slice().forEach(({ widget }) => widget.dispose());
      this._slots.forEach(slot => slot.dispose());
    }
  }

  /**
   * Show a widget until it is disposed.
   *
   * @param order - Where it stands among others at the same place.
   */
  add(widget: Widget, place: Place, order: string): void {
    this._shown.push({ widget, place, order });
    this._shown.sort((one, other) => (one.order < other.order ? -1 : 1));
    widget.disposed.connect(this._onDisposed, this);
    widget.node.addEventListener('focusin', ({ target }) => {
      this._focused = target as HTMLElement;
    });
    widget.node.addEventListener('focusout', ({ relatedTarget }) => {
      this._focused = relatedTarget ? null : this._focused;
    });
    this._update();
  }

  /** Change what is shown, and leave what is in sight where it is. */
  hold(change: () => void): void {
    this._view.hold(change);
  }

  /** Bring a widget into view, with as much of its cell as fits; focus it. */
  async reveal(widget: Widget): Promise<void> {
    const shown = this._shown.find(each => each.widget === widget);
    const index = shown ? this._neighbour(shown.place)[0] : -1;
    const cell = this._notebook.widgets[index];
    if (cell) {
      this._notebook.activeCellIndex = index; // as the keyboard makes it, and scrolls there
      await bringIntoView(this._notebook, cell);
      await bringIntoView(this._notebook, cell, widget.node);
    }
    widget.node.focus({ preventScroll: true });
  }

  private _onModelChanged(): void {
    this._notebook.model?.cells.changed.connect(this._update, this);
    this._update();
  }

  private _onDisposed(widget: Widget): void {
    this._shown = this._shown.filter(each => each.widget !== widget);
    this._update();
  }

  private _update(): void {
    if (this._isDisposed) {
      return;
    }
    const wanted = new Map<Slot, Widget[]>();
    this._slots = this._slots.filter(slot => !slot.isDisposed);
    for (const { place, widget } of this._shown) {
      const slot = this._slotAt(place);
      if (slot) {
        wanted.set(slot, [...(wanted.get(slot) ?? []), widget]);
      }
    }
    const isThere = this._slots.every(slot => {
      const widgets = wanted.get(slot);
      return (
        widgets?.length === slot.widgets.length &&
        widgets.every((widget, index) => widget === slot.widgets[index])
      );
    });
    if (!isThere) {
      this._view.hold(() => this._move(wanted));
    }
  }

  /** Move widgets. Who types in one goes on typing, also if its cell is gone. */
  private _move(wanted: ReadonlyMap<Slot, readonly Widget[]>): void {
    const focused = this._focused;
    if (document.activeElement === focused || !focused?.isConnected) {
      this._leftFocus = focused;
    }
    wanted.forEach((widgets, slot) =>
      widgets.forEach((widget, index) => {
        if (slot.widgets[index] !== widget) {
          slot.insertWidget(index, widget);
        }
      })
    );
    for (const slot of this._slots.filter(each => !wanted.has(each))) {
      slot.dispose();
    }
    this._restoreFocus();
  }

  /** Give the keyboard back to what had it, once that is on the page again. */
  private _restoreFocus(): void {
    if (this._leftFocus?.isConnected) {
      this._leftFocus.focus({ preventScroll: true });
      this._leftFocus = null;
    }
  }

  /** Where widgets of a place stand; null if its cell is not drawn yet. */
  private _slotAt(place: Place): Slot | null {
    const [index, side] = this._neighbour(place);
    const cell = this._notebook.widgets[index] ?? null;
    const found = this._slots.find(
      slot => slot.cell === cell && slot.side === side
    );
    if (found) {
      return found;
    }
    if (cell?.isPlaceholder()) {
      void cell.ready.then(() => this._update());
      return null;
    }
    const slot = new Slot(cell, side, () => this._restoreFocus());
    this._slots.push(slot);
    if (cell === null) {
      Widget.attach(slot, this._notebook.outerNode);
    } else if (side === 'above') {
      (cell.layout as PanelLayout).insertWidget(0, slot);
    } else {
      (cell.layout as PanelLayout).addWidget(slot);
    }
    return slot;
  }

  /** The cell beside a place, or -1 in a notebook without cells. */
  private _neighbour(place: Place): [number, Side] {
    const { widgets } = this._notebook;
    const named: Exclude<Place, 'end'> = place === 'end' ? {} : place;
    const { after, before, cell, follows = [] } = named;
    let index = -1;
    for (const id of [...follows, before ?? after ?? cell]) {
      if (index < 0 && id) {
        index = widgets.findIndex(each => isCell(each, id));
      }
    }
    if (index >= 0 && before) {
      return [index, 'above'];
    }
    index = index < 0 ? widgets.length - 1 : index;
    while (index > 0 && widgets[index].isHidden) {
      index -= 1; // below a heading that is folded
    }
    return [index, 'below'];
  }

  /** What had the keyboard last in a widget. */
  private _focused: HTMLElement | null = null;
  private _isDisposed = false;
  /** What had the keyboard when it was moved. */
  private _leftFocus: HTMLElement | null = null;
  private _shown: { widget: Widget; place: Place; order: string }[] = [];
  private _slots: Slot[] = [];
  private readonly _view: SteadyView;
}

type Side = 'above' | 'below';

/** Holds the widgets on one side of a cell, and lets go of them as it ends. */
class Slot extends Panel {
  constructor(
    readonly cell: Cell | null,
    readonly side: Side,
    private readonly _onAttached: () => void
  ) {
    super();
    this.addClass('jp-AgentExecNeighbours');
    this.node.dataset.side = side;
    // A double click edits a Markdown cell, wherever in it one clicks.
    this.node.addEventListener('dblclick', event => event.stopPropagation());
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._onAttached();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.widgets.slice().forEach(widget => {
      widget.parent = null;
    });
    super.dispose();
  }
}

/** Whether a cell has an id, also in a format whose cells have none. */
function isCell({ model }: Cell, id: unknown): boolean {
  return (
    model.id === id ||
    (typeof id === 'string' &&
      readCellRecord(model.getMetadata(METADATA_KEY))?.cell_id === id)
  );
}
