/** A place where what asks is shown while it asks. */
import { Panel } from '@lumino/widgets';
import { ApprovalView } from './approval';

/** Empty and hidden while the execution does not ask. */
export class ApprovalSlot extends Panel {
  constructor(
    private readonly _executionId: string,
    private readonly _options: ApprovalView.IOptions
  ) {
    super();
    this.addClass('jp-AgentExecApprovalSlot');
    _options.live.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  /** Whether there is something to be seen. */
  get isEmpty(): boolean {
    return this.widgets.length === 0;
  }

  private _onChanged(): void {
    const asking = this._options.live.asks(this._executionId);
    if (asking && this.isEmpty) {
      const view = new ApprovalView(asking, this._options);
      view.over.connect(() => this._end(view));
      this.addWidget(view);
    }
    this.setHidden(this.isEmpty);
  }

  private _end(view: ApprovalView): void {
    view.dispose();
    // It may ask again, for another kernel.
    this._onChanged();
  }
}
