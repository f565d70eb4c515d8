/** What a person thinks of a cell, or of a session: said, and shown. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { checkIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import type { IReview, Verdict } from '../tokens';
import { element, labelledButton, styledButton } from './elements';
import { commentIcon, flagIcon } from './icons';
import { commentText, reviewText } from './reviewwording';
import { momentText } from './wording';

/** Comments that somebody has begun, by what they are about. */
export type Drafts = Map<string, string>;

/** Toggles for a verdict, a comment, and who said so. */
export class ReviewRow extends Widget {
  constructor(private readonly _options: ReviewRow.IOptions) {
    super();
    const { drafts, id, name, words } = _options;
    this.addClass('jp-AgentExecReview');
    this.node.setAttribute('role', 'group');
    this.node.setAttribute('aria-label', name);
    // Keys are for its buttons and field, not for the notebook.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this._reviewed = labelledButton(checkIcon, words.reviewed, () =>
      this._toggle('approved')
    );
    this._flag = labelledButton(flagIcon, words.flag, () =>
      this._toggle('flagged')
    );
    this._say = labelledButton(commentIcon, words.comment, () =>
      this._isEditing ? this._stop() : this._edit()
    );
    this._who.dir = 'auto';
    this._comment.dir = 'auto';
    const line = element('div', 'jp-AgentExecReview-line');
    line.append(this._reviewed, this._flag, this._say, this._who);
    this.node.append(line, this._comment, this._createEditor());
    if (drafts.has(id)) {
      this._open(drafts.get(id)!);
    }
    this.render(null);
  }

  /** Show what was said; null if nothing was. */
  render(review: IReview | null): void {
    const { now, trans } = this._options;
    this._review = review;
    const own = this._own;
    for (const [button, verdict] of [
      [this._reviewed, 'approved'],
      [this._flag, 'flagged']
    ] as const) {
      button.setAttribute('aria-pressed', String(own?.verdict === verdict));
    }
    this.node.dataset.verdict = review?.verdict ?? '';
    this._who.hidden = review === null;
    this._who.textContent = review
      ? `${reviewText(review, trans)} · ${momentText(review.at, now())}`
      : '';
    this._who.title = review ? new Date(review.at).toLocaleString() : '';
    this._comment.hidden = !review?.comment;
    this._comment.textContent = review ? commentText(review) : '';
  }

  /** What was said of just this; not what is so only with the session. */
  private get _own(): IReview | null {
    const { isSession } = this._options;
    return this._review?.whole_session && !isSession ? null : this._review;
  }

  private get _isEditing(): boolean {
    return !this._editor.hidden;
  }

  private _toggle(verdict: Verdict): void {
    const own = this._own;
    const now = own?.verdict === verdict ? null : verdict;
    void this._save(now, own?.comment ?? null);
  }

  private _edit(): void {
    this._open(this._own?.comment ?? '');
    this._text.focus();
  }

  private _open(text: string): void {
    this._editor.hidden = false;
    this._say.setAttribute('aria-expanded', 'true');
    this._text.value = text;
  }

  /** Go back to where the comment was asked for. */
  private _stop(): void {
    const { drafts, id } = this._options;
    drafts.delete(id);
    this._editor.hidden = true;
    this._say.setAttribute('aria-expanded', 'false');
    this._say.focus();
  }

  private async _saveComment(): Promise<void> {
    const comment = this._text.value.trim() || null;
    if (await this._save(this._own?.verdict ?? null, comment)) {
      this._stop();
    }
  }

  /** Save, one at a time; false if that went wrong. */
  private async _save(
    verdict: Verdict | null,
    comment: string | null
  ): Promise<boolean> {
    if (this._saving) {
      return false;
    }
    this._saving = true;
    this.node.setAttribute('aria-busy', 'true');
    try {
      const review = await this._options.save(verdict, comment);
      if (!this.isDisposed) {
        this.render(review);
      }
      return true;
    } catch (error) {
      this._options.onError(error);
      return false;
    } finally {
      this._saving = false;
      this.node.removeAttribute('aria-busy');
    }
  }

  private _createEditor(): HTMLElement {
    const { drafts, id, trans, words } = this._options;
    this._say.setAttribute('aria-expanded', 'false');
    this._text.maxLength = 10_000;
    this._text.rows = 3;
    this._text.dir = 'auto';
    this._text.setAttribute('aria-label', words.comment);
    this._text.addEventListener('input', () =>
      drafts.set(id, this._text.value)
    );
    this._editor.hidden = true;
    this._editor.append(
      this._text,
      styledButton(trans.__('Save'), 'accept', () => void this._saveComment()),
      styledButton(trans.__('Cancel'), 'reject', () => this._stop())
    );
    this._editor.addEventListener('keydown', event => this._onKey(event));
    return this._editor;
  }

  private _onKey(event: KeyboardEvent): void {
    if (event.isComposing) {
      return;
    }
    if (event.key === 'Escape') {
      this._stop();
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      void this._saveComment();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private readonly _reviewed: HTMLButtonElement;
  private readonly _comment = element('div', 'jp-AgentExecReview-comment');
  private readonly _editor = element('div', 'jp-AgentExecReview-editor');
  private readonly _flag: HTMLButtonElement;
  private _review: IReview | null = null;
  private _saving = false;
  private readonly _say: HTMLButtonElement;
  private readonly _text = element('textarea', 'jp-AgentExecReview-text');
  private readonly _who = element('span', 'jp-AgentExecReview-who');
}

/** The options of a row. */
export namespace ReviewRow {
  /** What it is made of. */
  export interface IOptions {
    /** Of what it is about. */
    id: string;
    isSession: boolean;
    /** What the group of its buttons is called. */
    name: string;
    words: { reviewed: string; flag: string; comment: string };
    trans: TranslationBundle;
    drafts: Drafts;
    now: () => number;
    save: (
      verdict: Verdict | null,
      comment: string | null
    ) => Promise<IReview | null>;
    onError: (error: unknown) => void;
  }
}
