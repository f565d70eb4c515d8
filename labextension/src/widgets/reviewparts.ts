/** Reviews as parts of the panel's cells and sessions. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Panel, Widget } from '@lumino/widgets';
import { CommandIDs, isFinal } from '../tokens';
import type {
  Execute,
  IAgentExecApi,
  IExecutionModel,
  ISessionModel
} from '../tokens';
import { element, linkButton } from './elements';
import { ReviewRow } from './review';
import type { Drafts } from './review';
import { unreviewedText } from './reviewwording';

/** What parts are made of. */
export interface IReviewOptions {
  api: IAgentExecApi;
  trans: TranslationBundle;
  execute: Execute;
  drafts: Drafts;
  onError: (error: unknown) => void;
}

/** Below a cell of the panel: its review, and its cell if that was discarded. */
export class CellReview extends Panel {
  constructor(
    private readonly _model: IExecutionModel,
    options: IReviewOptions
  ) {
    super();
    this.addClass('jp-AgentExecCell-review');
    const { api, execute, trans } = options;
    const { id, seq } = _model.execution;
    this._row = new ReviewRow({
      ...options,
      id,
      isSession: false,
      name: trans.__('Review of cell %1', seq),
      words: {
        reviewed: trans.__('Reviewed'),
        flag: trans.__('Flag'),
        comment: trans.__('Comment')
      },
      now: () => Date.now() + api.clockOffset,
      save: async (verdict, comment) =>
        (await api.reviewExecution(id, verdict, comment)).review
    });
    this._discarded.addClass('jp-AgentExecCell-discarded');
    this._discarded.node.append(
      element('span', '', trans.__('Its cell was removed from the notebook.')),
      linkButton(trans.__('Undo'), () => {
        void execute(CommandIDs.undo, { execution_id: id });
      })
    );
    this.addWidget(this._discarded);
    this.addWidget(this._row);
    _model.changed.connect(this._onChanged, this);
    this._render();
  }

  private _onChanged(_: IExecutionModel, what: 'status' | 'outputs'): void {
    if (what === 'status') {
      this._render();
    }
  }

  private _render(): void {
    const { document: placed, review, status } = this._model.execution;
    this._row.setHidden(!isFinal(status));
    this._row.render(review);
    const discarded = placed?.status === 'discarded';
    if (!discarded && this._discarded.node.contains(document.activeElement)) {
      // The button that put it back goes with it.
      this._row.node.querySelector('button')?.focus();
    }
    this._discarded.setHidden(!discarded);
  }

  private readonly _discarded = new Widget();
  private readonly _row: ReviewRow;
}

/** At the head of a session: what is thought of all that it has run. */
export class SessionReview extends Panel {
  constructor(
    private readonly _model: ISessionModel,
    private readonly _options: IReviewOptions
  ) {
    super();
    this.addClass('jp-AgentExecSessionReview');
    const { api, trans } = _options;
    this._row = new ReviewRow({
      ..._options,
      id: _model.id,
      isSession: true,
      name: trans.__('Review of the session'),
      words: {
        reviewed: trans.__('All reviewed'),
        flag: trans.__('Flag all'),
        comment: trans.__('Comment')
      },
      now: () => Date.now() + api.clockOffset,
      save: async (verdict, comment) =>
        (await api.reviewSession(_model.id, verdict, comment)).review
    });
    this._unreviewed.addClass('jp-AgentExecSessionReview-count');
    this.addWidget(this._row);
    this.addWidget(this._unreviewed);
    _model.changed.connect(this._render, this);
    this._render();
  }

  private _render(): void {
    const { session } = this._model;
    this.setHidden(!session || session.executions === 0);
    this._row.render(session?.review ?? null);
    const text = unreviewedText(session?.unreviewed ?? 0, this._options.trans);
    this._unreviewed.setHidden(text === '');
    this._unreviewed.node.textContent = text;
  }

  private readonly _row: ReviewRow;
  private readonly _unreviewed = new Widget();
}
