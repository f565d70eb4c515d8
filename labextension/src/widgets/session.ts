/** One session: what there is to know of it, and its cells. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { Panel } from '@lumino/widgets';
import { isFinal, kernelName } from '../tokens';
import type { IExecutionModel, ISessionModel } from '../tokens';
import { CellWidget } from './cell';
import { SessionEnd, SessionFacts } from './facts';
import { CellFeed } from './feed';
import type { Timeline } from './timeline';

/** Shows a session's facts above its cells. */
export class SessionView extends Panel {
  /**
   * @param _options - What cells are made of.
   * @param _session - The session.
   * @param scroller - The element that scrolls the cells.
   */
  constructor(
    private readonly _options: Timeline.IOptions,
    private readonly _session: ISessionModel,
    scroller: HTMLElement
  ) {
    super();
    const { parts, trans } = _options;
    this.addClass('jp-AgentExecSessionView');
    this._feed = new CellFeed(
      scroller,
      _session,
      model => this._createCell(model),
      trans
    );
    this._feed.node.setAttribute(
      'aria-label',
      trans.__('Cells of the session')
    );
    this.addWidget(new SessionFacts(_session, _options));
    parts.session.forEach(createPart => this.addWidget(createPart(_session)));
    this.addWidget(this._feed);
    this.addWidget(new SessionEnd(_session, trans));
    _session.changed.connect(this._onChanged, this);
    _session.revealed.connect(this._onRevealed, this);
    this._onChanged();
  }

  /** Whether one of the cells shown still changes. */
  get isRunning(): boolean {
    return this._session.executions.some(
      ({ execution }) => !isFinal(execution.status)
    );
  }

  /** Emitted when cells came, went or changed. */
  get running(): ISignal<this, void> {
    return this._running;
  }

  /** Bring elapsed times up to date. */
  tick(): void {
    this._feed.cells.forEach(cell => cell.tick());
  }

  private _onChanged(): void {
    const { state } = this._session;
    this._feed.node.setAttribute(
      'aria-busy',
      String(state.phase === 'loading')
    );
    this._running.emit();
  }

  private _onRevealed(_: ISessionModel, model: IExecutionModel): void {
    // After the panel, if it is just being shown, has found its size.
    requestAnimationFrame(() => {
      if (!this.isDisposed) {
        this._feed.reveal(model.execution.seq);
      }
    });
  }

  private _createCell(model: IExecutionModel): CellWidget {
    const { session } = this._session;
    const { api } = this._options.model;
    return new CellWidget({
      ...this._options,
      model,
      api,
      kernelName: session && kernelName(session),
      now: () => Date.now() + api.clockOffset
    });
  }

  private readonly _feed: CellFeed;
  private _running = new Signal<this, void>(this);
}
