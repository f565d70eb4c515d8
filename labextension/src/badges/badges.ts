/** The badges in one notebook. */
import type { Cell, CodeCell, ICellModel } from '@jupyterlab/cells';
import type { StaticNotebook } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { PanelLayout } from '@lumino/widgets';
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { isFinal } from '../tokens';
import { Badge } from './badge';

/** A notebook one of whose cells is active. */
type ActiveNotebook = StaticNotebook & {
  readonly activeCell: Cell | null;
  readonly activeCellChanged: ISignal<unknown, Cell | null>;
};

/** What is used of a change of a list of cells. */
export interface ICellsChange {
  type: string;
  newIndex: number;
  newValues: readonly ICellModel[];
}

/**
 * Gives each cell with our metadata a badge, once the notebook shows it.
 *
 * The badge is a child of the cell: it scrolls, moves and ends with it.
 */
export class NotebookBadges implements IDisposable {
  constructor(
    private readonly _notebook: ActiveNotebook,
    private readonly _options: Badge.IOptions
  ) {
    _notebook.modelChanged.connect(this._onModelChanged, this);
    _notebook.activeCellChanged.connect(this._onActiveCellChanged, this);
    _options.live.changed.connect(this._onLiveChanged, this);
    this._onModelChanged();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      Signal.clearData(this);
      Array.from(this._badges.values()).forEach(badge => badge.dispose());
    }
  }

  private _onModelChanged(): void {
    const cells = this._notebook.model?.cells;
    cells?.changed.connect(this._onCellsChanged, this);
    this._notebook.widgets.forEach(cell => this._watch(cell));
  }

  private _onCellsChanged(_: unknown, change: ICellsChange): void {
    if (change.type === 'add') {
      const { newIndex, newValues } = change;
      this._notebook.widgets
        .slice(newIndex, newIndex + newValues.length)
        .forEach(cell => this._watch(cell));
    }
  }

  private _watch(cell: Cell): void {
    if (cell.model.type !== 'code' || this._cells.has(cell.model)) {
      return;
    }
    this._cells.set(cell.model, cell as CodeCell);
    cell.model.metadataChanged.connect(this._onMetadataChanged, this);
    this._update(cell as CodeCell);
  }

  private _onMetadataChanged(
    model: ICellModel,
    { key }: { key: string }
  ): void {
    const cell = this._cells.get(model);
    if (cell && key === METADATA_KEY) {
      this._update(cell);
    }
  }

  /** Give a cell its badge, change that, or take it away. */
  private _update(cell: CodeCell): void {
    const record = readCellRecord(cell.model.getMetadata(METADATA_KEY));
    const badge = this._badges.get(cell);
    if (!record) {
      badge?.dispose();
    } else if (badge) {
      badge.record = record;
    } else {
      void cell.ready.then(() => this._add(cell));
    }
  }

  private _add(cell: CodeCell): void {
    if (this._isDisposed || cell.isDisposed || this._badges.has(cell)) {
      return;
    }
    const record = readCellRecord(cell.model.getMetadata(METADATA_KEY));
    if (!record) {
      return;
    }
    const badge = new Badge(cell, record, this._options);
    badge.disposed.connect(() => this._badges.delete(cell));
    this._badges.set(cell, badge);
    if (cell === this._notebook.activeCell) {
      this._onActiveCellChanged(null, cell);
    }
    (cell.layout as PanelLayout).insertWidget(0, badge);
  }

  /** As with the cells themselves, Tab stops in the active one only. */
  private _onActiveCellChanged(_: unknown, cell: Cell | null): void {
    if (this._tabStop && !this._tabStop.isDisposed) {
      this._tabStop.tabStop = false;
    }
    this._tabStop = this._badges.get(cell as CodeCell) ?? null;
    if (this._tabStop) {
      this._tabStop.tabStop = true;
    }
  }

  private _onLiveChanged(): void {
    for (const badge of this._badges.values()) {
      if (!isFinal(badge.record.status)) {
        badge.tick();
      }
    }
  }

  private readonly _badges = new Map<CodeCell, Badge>();
  private readonly _cells = new WeakMap<ICellModel, CodeCell>();
  private _isDisposed = false;
  private _tabStop: Badge | null = null;
}
