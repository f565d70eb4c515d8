/** The cells of the chosen session. */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';
import type {
  Execute,
  IActivityModel,
  IExecution,
  ISessionModel
} from '../tokens';
import { Announcer } from './announcer';
import type { ICellParts } from './cell';
import { Clock } from './clock';
import type { Highlight } from './highlight';
import { SessionView } from './session';

/** Shows the chosen session, whichever it is. */
export class Timeline extends Panel {
  constructor(private readonly _options: Timeline.IOptions) {
    super();
    const { model, trans } = _options;
    this.addClass('jp-AgentExecTimeline');
    this.title.label = trans.__('Cells');
    this._announcer = new Announcer(trans);
    this.addWidget(this._announcer);
    model.selectedChanged.connect(this._onSelected, this);
    this._onSelected();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._clock.dispose();
    super.dispose();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._keepClock();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._keepClock();
  }

  /** Show how much time has passed. */
  tick(): void {
    this._session?.tick();
  }

  private _onSelected(): void {
    this._session?.dispose();
    this._session = null;
    const { selected } = this._options.model;
    if (selected) {
      this._session = new SessionView(this._options, selected, this.node);
      this._session.running.connect(this._keepClock, this);
      selected.finished.connect(this._onFinished, this);
      this.addWidget(this._session);
    }
    this._keepClock();
  }

  private _onFinished(_: ISessionModel, execution: IExecution): void {
    this._announcer.add(execution);
  }

  /** Let the clock go while something runs that can be seen. */
  private _keepClock(): void {
    const needed = this.isVisible && (this._session?.isRunning ?? false);
    this._clock.set(this, needed);
  }

  private readonly _announcer: Announcer;
  private readonly _clock = new Clock(() => Date.now());
  private _session: SessionView | null = null;
}

/** The options of a timeline. */
export namespace Timeline {
  /** What it is made of. */
  export interface IOptions {
    model: IActivityModel;
    rendermime: IRenderMimeRegistry;
    trans: TranslationBundle;
    execute: Execute;
    highlight: Highlight;
    parts: ICellParts;
    /** Tells a person that something they asked for failed. */
    onError: (error: unknown) => void;
  }
}
