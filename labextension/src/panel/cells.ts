/** The section that shows the chosen session. */
import { Panel, Widget } from '@lumino/widgets';
import type {
  IActivityModel,
  IExecution,
  IExecutionModel,
  ISessionModel
} from '../tokens';
import { element, linkButton } from '../ui/elements';
import { createGrant } from '../access/grant';
import { cellName, closedText } from '../ui/wording';
import { Details } from '../ui/details';
import { createEdits } from '../session/edits';
import { createFacts } from '../session/facts';
import { ImageStrip } from './images';
import { SessionNotebook } from './notebook';

/** Shows the chosen session, whichever it is. */
export class CellsSection extends Panel {
  constructor(private readonly _options: CellsSection.IOptions) {
    super();
    const { model, trans } = _options;
    this.addClass('jp-AgentExecCells');
    this.title.label = trans.__('Cells');
    const finished = new Widget({ node: this._finished });
    finished.addClass('jp-AgentExec-visuallyHidden');
    this._finished.setAttribute('role', 'status');
    this.addWidget(finished);
    model.selectedChanged.connect(this._onSelected, this);
    this._onSelected();
  }

  private _onSelected(): void {
    this._view?.dispose();
    this._view = null;
    const { selected } = this._options.model;
    if (selected) {
      this._view = new SessionView({ ...this._options, session: selected });
      selected.finished.connect(this._onFinished, this);
      this.addWidget(this._view);
    }
  }

  private _onFinished(_: ISessionModel, execution: IExecution): void {
    // Those who listen hear it.
    this._finished.textContent = cellName(execution, this._options.trans);
  }

  private readonly _finished = element('div', '');
  private _view: SessionView | null = null;
}

/** The options of the section. */
export namespace CellsSection {
  /** What it is made of. */
  export interface IOptions extends Omit<SessionNotebook.IOptions, 'session'> {
    model: IActivityModel;
  }
}

/** A session's facts above its cells. */
class SessionView extends Panel {
  constructor(private readonly _options: SessionNotebook.IOptions) {
    super();
    this.addClass('jp-AgentExecSessionView');
    const { session, trans } = _options;
    this._notebook = new SessionNotebook(_options);
    this._earlier = new Widget();
    this._earlier.addClass('jp-AgentExecEarlier');
    this._earlier.node.append(
      linkButton(trans.__('Show earlier cells'), () => this._readEarlier())
    );
    const props = { ..._options, model: session };
    this.addWidget(createFacts(props));
    const grant = new Details(session, () => this._grant());
    grant.addClass('jp-AgentExecGrant');
    this.addWidget(grant);
    this.addWidget(createEdits(props));
    this.addWidget(
      new ImageStrip({
        ..._options,
        onShow: id => void this._notebook.reveal(id)
      })
    );
    this.addWidget(this._earlier);
    this.addWidget(this._notebook);
    const end = new Details(session, () => this._end());
    end.addClass('jp-AgentExecEnd');
    this.addWidget(end);
    session.changed.connect(this._onChanged, this);
    session.revealed.connect(this._onRevealed, this);
    this._onChanged();
  }

  private _onChanged(): void {
    const { executions, hasEarlier } = this._options.session;
    this._earlier.setHidden(!hasEarlier);
    this._notebook.setHidden(executions.length === 0);
  }

  /** What the agent runs without asking. */
  private _grant(): HTMLElement[] {
    const { clock, execute, session: model, trans } = this._options;
    const { session } = model;
    const line = session && createGrant(session, clock.now(), execute, trans);
    return line ? [line] : [];
  }

  /** Why the session takes nothing new. */
  private _end(): HTMLElement[] {
    const { session: model, trans } = this._options;
    const { last, session } = model;
    if (session?.status !== 'closed') {
      return [];
    }
    const closed = model
      .eventsAfter(last)
      .find(({ type }) => type === 'closed');
    const text = closedText(session, closed, trans);
    return [element('div', 'jp-AgentExecEnd-closed', text)];
  }

  private _onRevealed(_: ISessionModel, { execution }: IExecutionModel): void {
    // After the panel, if it is just being shown, has found its size.
    requestAnimationFrame(() => {
      if (!this.isDisposed) {
        void this._notebook.reveal(execution.id);
      }
    });
  }

  private _readEarlier(): void {
    const { onError, session } = this._options;
    const first = session.executions[0]?.execution.id;
    session
      .readEarlier()
      .then(() => this._notebook.reveal(first))
      .catch(onError);
  }

  private readonly _earlier: Widget;
  private readonly _notebook: SessionNotebook;
}
