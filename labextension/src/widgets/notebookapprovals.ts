/** What asks, in the notebook where it would run. */
import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { PanelLayout } from '@lumino/widgets';
import { METADATA_KEY, readCellRecord } from '../model/cellrecord';
import { SteadyView } from '../model/view';
import type { IExecution } from '../tokens';
import { ApprovalView } from './approval';
import { Badge } from './badge';

/**
 * Shows what asks above the input of its cell, below the badge.
 *
 * Which cell that is, the server tells: a cell that merely says that it asks,
 * as a copy does, is not believed.
 */
export class NotebookApprovals implements IDisposable {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _options: ApprovalView.IOptions
  ) {
    const { content, context } = _panel;
    this._view = new SteadyView(content);
    _options.approvals.changed.connect(this._update, this);
    content.modelChanged.connect(this._onModelChanged, this);
    context.pathChanged.connect(this._update, this);
    this._onModelChanged();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      Signal.clearData(this);
      Array.from(this._views.values()).forEach(view => view.dispose());
    }
  }

  private _onModelChanged(): void {
    this._panel.content.model?.cells.changed.connect(this._update, this);
    this._update();
  }

  private _update(): void {
    const path = this._panel.context.localPath;
    for (const execution of this._options.approvals.asking) {
      const { document: placed, id } = execution;
      if (placed?.cell_id && placed.path === path && !this._views.has(id)) {
        this._show(execution, placed.cell_id);
      }
    }
  }

  private _show(execution: IExecution, cellId: string): void {
    const cell = this._panel.content.widgets.find(each => isCell(each, cellId));
    if (cell) {
      void cell.ready.then(() => this._add(execution.id, cell));
    }
  }

  private _add(executionId: string, cell: Cell): void {
    const asking = this._options.approvals.get(executionId);
    if (
      !asking ||
      this._isDisposed ||
      cell.isDisposed ||
      this._views.has(executionId)
    ) {
      return;
    }
    const view = new ApprovalView(asking, this._options);
    this._views.set(executionId, view);
    view.disposed.connect(() => this._views.delete(executionId));
    view.over.connect(() => this._view.hold(() => view.dispose()));
    const layout = cell.layout as PanelLayout;
    const below = layout.widgets[0] instanceof Badge ? 1 : 0;
    this._view.hold(() => layout.insertWidget(below, view));
  }

  private _isDisposed = false;
  private readonly _view: SteadyView;
  private readonly _views = new Map<string, ApprovalView>();
}

/** Whether a cell has an id, also in a format whose cells have none. */
function isCell({ model }: Cell, cellId: string): boolean {
  return (
    model.id === cellId ||
    readCellRecord(model.getMetadata(METADATA_KEY))?.cell_id === cellId
  );
}
