/** What needs approval, in the notebook where it would run. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { IExecution } from '../tokens';
import { ApprovalView } from './approval';
import { CellNeighbours } from './cellneighbours';

/**
 * Shows each execution that needs approval at its place in a notebook.
 *
 * The server says where that is: a cell that merely says that it needs
 * approval, as a copy does, is not believed.
 */
export class NotebookApprovals implements IDisposable {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _options: ApprovalView.IOptions
  ) {
    this._places = new CellNeighbours(_panel.content);
    _options.approvals.changed.connect(this._update, this);
    _panel.context.pathChanged.connect(this._update, this);
    this._update();
  }

  get isDisposed(): boolean {
    return this._places.isDisposed;
  }

  dispose(): void {
    Signal.clearData(this);
    this._places.dispose();
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

  private _show(execution: IExecution, cell: string): void {
    const { accepted_at, id } = execution;
    const view = new ApprovalView(execution, this._options);
    this._views.set(id, view);
    view.disposed.connect(() => this._views.delete(id));
    view.over.connect(() => view.dispose());
    this._places.add(view, { cell }, `${accepted_at} ${id}`);
  }

  private readonly _places: CellNeighbours;
  private readonly _views = new Map<string, ApprovalView>();
}
