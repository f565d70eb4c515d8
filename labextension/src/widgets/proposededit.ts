/** One change that an agent proposes, and the user's decision. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { diffWords } from '../model/textdiff';
import type { IProposedEdit } from '../tokens';
import { element, styledButton } from './elements';
import { firstLine } from './notebookwording';
import { showHidden } from './plainsource';
import { errorText, quoted } from './wording';

const TAGS = { same: 'span', added: 'ins', removed: 'del' } as const;

/** Shows a proposed new cell, or what would change in the cell below it. */
export class ProposedEditView extends Widget {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _decide: (what: 'keep' | 'reject') => Promise<void>
  ) {
    super();
    this.addClass('jp-AgentExecProposed');
    this.node.setAttribute('role', 'group');
    this.node.tabIndex = -1;
    // Keys are for its buttons, not for the notebook.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this._keep = styledButton(_trans.__('Keep'), 'accept', () =>
      this._act('keep')
    );
    this._reject = styledButton(_trans.__('Reject'), 'reject', () =>
      this._act('reject')
    );
    this._notice.setAttribute('role', 'alert');
    const head = element('div', 'jp-AgentExecProposed-head');
    head.append(this._what, this._notice, this._keep, this._reject);
    this.node.append(head, this._body);
  }

  /** The cell of the notebook after which it is shown. */
  get follows(): string | null {
    return this._follows;
  }

  /** @param before - The source of the cell before its place. */
  render(edit: IProposedEdit, before: string | null): void {
    const shown = JSON.stringify([edit, before]);
    if (this._shown === shown) {
      return;
    }
    this._shown = shown;
    this._follows = edit.follows;
    const text = whatText(edit, before, this._trans);
    this.node.dataset.kind = edit.kind;
    this.node.setAttribute('aria-label', text);
    this._what.textContent = text;
    this._keep.hidden = !edit.fits;
    this._notice.textContent = edit.reason ?? '';
    this._body.replaceChildren(...this._content(edit));
  }

  private _content(edit: IProposedEdit): Node[] {
    if ((edit.kind !== 'insert' && edit.kind !== 'change') || !edit.after) {
      return [];
    }
    const after = (edit.result ?? edit.after).source;
    // What was merged, not what is typed since: more of it comes soon.
    const now = (edit.current ?? edit.before)?.source ?? after;
    const pre = element('pre', 'jp-AgentExecPlain jp-AgentExecProposed-diff');
    pre.tabIndex = 0;
    pre.dir = 'ltr';
    pre.append(
      ...diffWords(now, after).map(({ kind, text }) =>
        element(TAGS[kind], '', text)
      )
    );
    showHidden(pre, edit.lookalikes, this._trans);
    return [pre];
  }

  private async _act(what: 'keep' | 'reject'): Promise<void> {
    this._keep.disabled = this._reject.disabled = true;
    this._notice.textContent = '';
    try {
      await this._decide(what);
    } catch (error) {
      if (!this.isDisposed) {
        this._notice.textContent = errorText(error, this._trans);
      }
    }
    this._keep.disabled = this._reject.disabled = false;
  }

  private readonly _body = element('div', 'jp-AgentExecProposed-body');
  private _follows: string | null = null;
  private readonly _keep: HTMLButtonElement;
  private readonly _notice = element('span', 'jp-AgentExecProposed-notice');
  private readonly _reject: HTMLButtonElement;
  private _shown = '';
  private readonly _what = element('span', 'jp-AgentExecProposed-what');
}

/** What an edit does, in a few words. */
function whatText(
  { after, before, kind, moved }: IProposedEdit,
  neighbour: string | null,
  trans: TranslationBundle
): string {
  const where =
    neighbour === null
      ? trans.__('to the top')
      : trans.__('below %1', quoted(firstLine(neighbour)));
  switch (kind) {
    case 'insert':
      return {
        code: trans.__('New code cell'),
        markdown: trans.__('New Markdown cell'),
        raw: trans.__('New raw cell')
      }[after?.cell_type ?? 'code'];
    case 'delete':
      return trans.__('Delete this cell');
    case 'clear_outputs':
      return trans.__('Clear the outputs of this cell');
    case 'move':
      return trans.__('Move this cell %1', where);
    case 'change':
      if (before?.cell_type !== after?.cell_type) {
        return {
          code: trans.__('Change this cell to code'),
          markdown: trans.__('Change this cell to Markdown'),
          raw: trans.__('Change this cell to a raw cell')
        }[after?.cell_type ?? 'code'];
      }
      return moved
        ? trans.__('Change this cell, and move it %1', where)
        : trans.__('Change this cell');
  }
}
