/** What needs approval, in the notebook where it would run. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { IExecution } from '../tokens';
import { ApprovalView } from './approval';
import { CellNeighbours } from './cellneighbours';
import type { Place } from './cellneighbours';

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

  /** Bring what needs approval into view. */
  async reveal(executionId: string): Promise<void> {
    const view = this._views.get(executionId);
    if (view) {
      await this._places.reveal(view);
    }
  }

  private _update(): void {
    const path = this._panel.context.localPath;
    for (const execution of this._options.approvals.asking) {
      const { document: placed, id } = execution;
      if (placed?.placement && placed.path === path && !this._views.has(id)) {
        this._show(execution, placed.placement);
      }
    }
  }

  private _show(execution: IExecution, place: Place): void {
    const { accepted_at, id } = execution;
    const view = new ApprovalView(execution, this._options);
    view.addClass('jp-AgentExecProposal');
    view.node.tabIndex = -1;
    this._views.set(id, view);
    view.disposed.connect(() => this._views.delete(id));
    view.over.connect(() => {
      view.dispose();
      this._update(); // it may need approval again
    });
    this._places.add(view, place, `${accepted_at} ${id}`);
  }

  private readonly _places: CellNeighbours;
  private readonly _views = new Map<string, ApprovalView>();
}
