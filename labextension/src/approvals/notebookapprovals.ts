/** What asks the user, in the notebook where it would run, or runs. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';
import { isProposed, isRunning } from '../tokens';
import type { IExecution } from '../tokens';
import { ApprovalView } from './approval';
import { InputView } from './inputview';
import { CellNeighbours } from '../ui/cellneighbours';
import type { Place } from '../ui/cellneighbours';
import { untrusted } from '../ui/untrusted';

/**
 * Shows each execution that needs approval, or waits for its turn after that,
 * at its place in a notebook, and below its cell what its code asks for.
 *
 * The server says where that is: a cell that merely says that it needs
 * approval, as a copy does, is not believed.
 */
export class NotebookApprovals implements IDisposable {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _options: NotebookApprovals.IOptions
  ) {
    const { content, context } = _panel;
    this._places = new CellNeighbours(content);
    this._rendermime = untrusted(content.rendermime);
    _options.live.changed.connect(this._update, this);
    context.pathChanged.connect(this._update, this);
    content.model?.cells.changed.connect(this._update, this);
    this._update();
  }

  get isDisposed(): boolean {
    return this._places.isDisposed;
  }

  dispose(): void {
    Signal.clearData(this);
    this._places.dispose();
  }

  /** Bring what asks into view. */
  async reveal(executionId: string): Promise<void> {
    const view = this._views.get(executionId);
    if (view) {
      await this._places.reveal(view);
      view.activate();
    }
  }

  private _update(): void {
    const { asking, inputs, now } = this._options.live;
    asking.forEach(each => this._show(each));
    now?.pending
      .filter(each => isApproved(each) && !this._over.has(each.id))
      .forEach(each => this._show(each));
    inputs.forEach(each => this._showInput(each));
  }

  private _showInput({ accepted_at, document, id }: IExecution): void {
    const { live, trans } = this._options;
    const cell = document?.cell_id;
    const isHere = document?.path === this._panel.context.localPath;
    if (!cell || !isHere || this._views.has(id)) {
      return;
    }
    const model = {
      changed: live.changed,
      get execution() {
        return live.pending(id) ?? { id, input: null };
      }
    };
    const view = new InputView({ api: live.api, model, trans });
    const endWithRun = () => {
      const now = live.pending(id);
      if (!now || !isRunning(now.status)) {
        view.dispose();
      }
    };
    view.node.dataset.asks = id;
    this._views.set(id, view);
    live.changed.connect(endWithRun);
    view.disposed.connect(() => {
      live.changed.disconnect(endWithRun);
      this._views.delete(id);
    });
    this._places.add(view, { cell }, `${accepted_at} ${id}`);
  }

  /** Where an execution is shown here; null if it is not. */
  private _placeOf(execution: IExecution): Place | null {
    const { document: placed } = execution;
    const { context } = this._panel;
    if (!placed?.placement || placed.path !== context.localPath) {
      return null;
    }
    const { follows, placement } = placed;
    return placement === 'end' ? placement : { ...placement, follows };
  }

  private _show(execution: IExecution): void {
    const place = this._placeOf(execution);
    if (!place || this._views.has(execution.id)) {
      return;
    }
    const { accepted_at, id } = execution;
    const view = new ApprovalView(execution, {
      ...this._options,
      rendermime: this._rendermime
    });
    view.addClass('jp-AgentExecProposal');
    view.node.tabIndex = -1;
    view.node.dataset.asks = id;
    this._views.set(id, view);
    view.disposed.connect(() => this._views.delete(id));
    this._over.delete(id);
    view.over.connect(() => {
      this._over.add(id);
      view.dispose();
      this._update(); // it may need approval again
    });
    this._places.add(view, place, `${accepted_at} ${id}`);
  }

  /** What is shown no more, though a list may still have it. */
  private readonly _over = new Set<string>();
  private readonly _places: CellNeighbours;
  private readonly _rendermime: IRenderMimeRegistry;
  private readonly _views = new Map<string, Widget>();
}

/** Whether it was approved, and is in no notebook before its turn has come. */
function isApproved(execution: IExecution): boolean {
  const { approval, status } = execution;
  const waits = status === 'queued' && isProposed(execution);
  return waits && approval?.status === 'approved';
}

/** The options of what needs approval in a notebook. */
export namespace NotebookApprovals {
  /** What it is made of. */
  export type IOptions = Omit<ApprovalView.IOptions, 'rendermime'>;
}
