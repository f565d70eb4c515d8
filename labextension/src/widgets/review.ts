/** What users think of cells and sessions. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { checkIcon } from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import { Panel, Widget } from '@lumino/widgets';
import { CommandIDs, isFinal } from '../tokens';
import type {
  Execute,
  IExecutionModel,
  IReview,
  ISessionModel,
  Verdict
} from '../tokens';
import { element, labelledButton, linkButton } from './elements';
import { commentIcon, flagIcon } from './icons';
import { momentText, plainName, userText } from './wording';

/** What somebody thinks, and who: "Reviewed by Ada". */
export function reviewText(
  { by, verdict, whole_session }: IReview,
  trans: TranslationBundle
): string {
  const name = userText(by, trans);
  const text =
    verdict === 'approved'
      ? trans.__('Reviewed by %1', name)
      : verdict === 'flagged'
        ? trans.__('Flagged by %1', name)
        : trans.__('Commented on by %1', name);
  return whole_session ? trans.__('%1 (whole session)', text) : text;
}

/** A comment in its lines; nothing in it is hidden or turns other text. */
export function commentText({ comment }: IReview): string {
  return (comment ?? '')
    .split(/\r\n?|\n/)
    .map(line => line.split('\t').map(plainName).join('\t'))
    .join('\n');
}

/** Toggles for a verdict, a comment, and who gave them. */
export class ReviewRow extends Widget {
  constructor(private readonly _options: ReviewRow.IOptions) {
    super();
    const { execute, isSession, name, subject, trans } = _options;
    this.addClass('jp-AgentExecReview');
    this.node.setAttribute('role', 'group');
    this.node.setAttribute('aria-label', name);
    // Keys are for its buttons, not for the notebook.
    this.node.dataset.lmSuppressShortcuts = 'true';
    const toggle = (icon: LabIcon, label: string, verdict: Verdict) => {
      const button = labelledButton(icon, label, () => {
        const wanted = this._own?.verdict === verdict ? null : verdict;
        void execute(CommandIDs.review, { ...subject, verdict: wanted });
      });
      this._toggles.set(verdict, button);
      return button;
    };
    this._who.dir = 'auto';
    this._comment.dir = 'auto';
    const line = element('div', 'jp-AgentExecReview-line');
    line.append(
      toggle(
        checkIcon,
        isSession ? trans.__('All reviewed') : trans.__('Reviewed'),
        'approved'
      ),
      toggle(
        flagIcon,
        isSession ? trans.__('Flag all') : trans.__('Flag'),
        'flagged'
      ),
      labelledButton(commentIcon, trans.__('Comment'), () => {
        void execute(CommandIDs.comment, subject);
      }),
      this._who
    );
    this.node.append(line, this._comment);
    this.render(null);
  }

  /** Show a review; null if there is none. */
  render(review: IReview | null): void {
    const { trans } = this._options;
    this._review = review;
    for (const [verdict, button] of this._toggles) {
      const isGiven = this._own?.verdict === verdict;
      button.setAttribute('aria-pressed', String(isGiven));
    }
    this.node.dataset.verdict = review?.verdict ?? '';
    this._who.hidden = review === null;
    this._who.textContent = review
      ? `${reviewText(review, trans)} · ${momentText(review.at, Date.now())}`
      : '';
    this._comment.hidden = !review?.comment;
    this._comment.textContent = review ? commentText(review) : '';
  }

  /** What is thought of just this; not what is so only with the session. */
  private get _own(): IReview | null {
    const { isSession } = this._options;
    return this._review?.whole_session && !isSession ? null : this._review;
  }

  private readonly _comment = element('div', 'jp-AgentExecReview-comment');
  private _review: IReview | null = null;
  private readonly _toggles = new Map<Verdict, HTMLButtonElement>();
  private readonly _who = element('span', 'jp-AgentExecReview-who');
}

/** The options of a row. */
export namespace ReviewRow {
  /** What it is made of. */
  export interface IOptions {
    /** What it is about, as commands have it. */
    subject: { execution_id: string } | { session_id: string };
    isSession: boolean;
    /** What the group of its buttons is called. */
    name: string;
    trans: TranslationBundle;
    execute: Execute;
  }
}

/** Reviews as parts of the panel's cells and sessions. */
export function reviewParts(trans: TranslationBundle, execute: Execute) {
  return {
    cell: (model: IExecutionModel) => new CellReview(model, trans, execute),
    session: (model: ISessionModel) => new SessionReview(model, trans, execute)
  };
}

/** Below a cell of the panel: its review, and its cell if that was discarded. */
class CellReview extends Panel {
  constructor(
    private readonly _model: IExecutionModel,
    trans: TranslationBundle,
    execute: Execute
  ) {
    super();
    this.addClass('jp-AgentExecCell-review');
    const { id, seq } = _model.execution;
    const subject = { execution_id: id };
    this._row = new ReviewRow({
      subject,
      isSession: false,
      name: trans.__('Review of cell %1', seq),
      trans,
      execute
    });
    this._discarded.addClass('jp-AgentExecCell-discarded');
    this._discarded.node.append(
      element('span', '', trans.__('Its cell was removed from the notebook.')),
      linkButton(trans.__('Undo'), () => {
        void execute(CommandIDs.undo, subject);
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
class SessionReview extends ReviewRow {
  constructor(
    private readonly _model: ISessionModel,
    trans: TranslationBundle,
    execute: Execute
  ) {
    super({
      subject: { session_id: _model.id },
      isSession: true,
      name: trans.__('Review of the session'),
      trans,
      execute
    });
    this.addClass('jp-AgentExecSessionReview');
    _model.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  private _onChanged(): void {
    const { session } = this._model;
    this.setHidden(!session || session.executions === 0);
    this.render(session?.review ?? null);
  }
}
