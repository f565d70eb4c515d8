/** One change that an agent proposes, and the user's decision. */
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Panel, Widget } from '@lumino/widgets';
import type { IEditOfRound } from './proposals';
import { sourceHash } from '../api/cellrecord';
import type { IDecisionDetails, IProposedEdit } from '../tokens';
import { element, styledButton } from '../ui/elements';
import { firstLine } from '../ui/notebookwording';
import { askReason } from '../ui/reason';
import { SourceEditor } from '../ui/sourceeditor';
import { errorText, nameOf, quoted } from '../ui/wording';

/** Shows a proposed new cell, or what would change in the cell below it. */
export class ProposedEditView extends Panel {
  constructor(private readonly _options: ProposedEditView.IOptions) {
    super();
    const { trans } = _options;
    this.addClass('jp-AgentExecProposed');
    this.node.setAttribute('role', 'group');
    this.node.tabIndex = -1;
    // Keys are for its buttons, not for the notebook.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this._keep = styledButton(trans.__('Keep'), 'accept', () =>
      this._keepShown()
    );
    this._edit = styledButton(trans.__('Edit'), 'reject', () =>
      this._toggleDraft()
    );
    this._reject = styledButton(trans.__('Reject…'), 'reject', async () => {
      const reason = await askReason(trans);
      if (reason !== null) {
        await this._decide('reject', { reason: reason || null });
      }
    });
    this._notice.setAttribute('role', 'alert');
    const head = element('div', 'jp-AgentExecProposed-head');
    const what = element('div', 'jp-AgentExecProposed-what');
    what.append(this._what, this._why);
    head.append(what, this._notice, this._keep, this._edit, this._reject);
    this.addWidget(new Widget({ node: head }));
  }

  /** The cell of the notebook after which it is shown. */
  get follows(): string | null {
    return this._shown?.follows ?? null;
  }

  /** Why it is not kept with all others; empty if it can be. */
  get heldBack(): string {
    const { trans } = this._options;
    return this._unseen
      ? unseenText(trans)
      : this._draft
        ? trans.__(
            'You have edited this change. Keep it, or discard your edits.'
          )
        : '';
  }

  /** @param before - The source of the cell before its place. */
  render(edit: IEditOfRound, before: string | null): void {
    const rendered = JSON.stringify([edit, before]);
    if (this._rendered === rendered) {
      return;
    }
    this._rendered = rendered;
    this._shown = edit;
    const text = whatText(edit, before, this._options.trans);
    this.node.dataset.kind = edit.kind;
    this.node.setAttribute('aria-label', text);
    this._what.textContent = text;
    this._keep.hidden = !edit.fits;
    this._notice.textContent = edit.reason ?? '';
    const name = nameOf(edit.agent);
    this._why.textContent = edit.purpose
      ? `${name}: ${quoted(edit.purpose)}`
      : name;
    if (!this._draft) {
      this._renderBody();
    }
  }

  /** What a person is making, or has made, of the source; null if nothing. */
  private get _draft(): SourceEditor | null {
    const { _body } = this;
    return _body?.isEditing || _body?.edited !== undefined ? _body : null;
  }

  /** Let a person edit what is proposed, or show that again. */
  private _toggleDraft(): void {
    this._notice.textContent = '';
    const isDrafted = this._draft !== null;
    this._renderBody();
    if (!isDrafted && this._body) {
      this._body.edit();
      this._renderButtons();
    } else {
      this._edit.focus();
    }
  }

  private _renderBody(): void {
    const { after, kind } = this._shown!;
    this._body?.dispose();
    this._body = null;
    if (after && (kind === 'insert' || kind === 'change')) {
      this._body = this._createSource(this._shown!);
      this.addWidget(this._body);
    }
    this._edit.hidden = this._body === null || !this._shown!.fits;
    this._renderButtons();
  }

  private _renderButtons(): void {
    const { trans } = this._options;
    this._keep.setAttribute('aria-disabled', String(this._unseen !== null));
    this._edit.textContent = this._draft
      ? trans.__('Discard edits')
      : trans.__('Edit');
  }

  private _createSource(edit: IProposedEdit): SourceEditor {
    const { editors, mimeType, trans } = this._options;
    const { cell_type, source } = edit.result ?? edit.after!;
    // What was merged, not what is typed since: more of it comes soon.
    const now = edit.current ?? edit.before;
    this._base = now?.source ?? '';
    const editor = new SourceEditor({
      factory: editors.factoryService.newInlineEditor,
      mimeType: {
        code: mimeType(),
        markdown: 'text/x-ipythongfm',
        raw: 'text/plain'
      }[cell_type],
      source,
      before: edit.kind === 'insert' ? null : (now?.source ?? null),
      // The rest is the user's own.
      showsDifference: true,
      fold: true,
      parts: edit.kind === 'change',
      lookalikes: edit.lookalikes,
      trans
    });
    editor.seen.connect(() => this._renderButtons());
    editor.changed.connect(() => this._renderButtons());
    return editor;
  }

  private async _keepShown(): Promise<void> {
    if (this._unseen) {
      this._notice.textContent = unseenText(this._options.trans);
      this._unseen.showEnd();
      return;
    }
    const source = this._draft?.edited;
    const source_sha256 = sourceHash(this._base);
    await this._decide(
      'keep',
      source === undefined ? {} : { source, source_sha256 }
    );
  }

  private async _decide(
    what: 'keep' | 'reject',
    more: IDecisionDetails
  ): Promise<void> {
    this._keep.disabled = this._reject.disabled = true;
    this._notice.textContent = '';
    try {
      await this._options.decide(what, more);
    } catch (error) {
      if (!this.isDisposed) {
        this._notice.textContent = errorText(error, this._options.trans);
      }
    }
    this._keep.disabled = this._reject.disabled = false;
  }

  private get _unseen(): SourceEditor | null {
    return this._body?.isSeen === false ? this._body : null;
  }

  /** The source of the cell when the body was made. */
  private _base = '';
  private _body: SourceEditor | null = null;
  private readonly _edit: HTMLButtonElement;
  private readonly _keep: HTMLButtonElement;
  private readonly _notice = element('span', 'jp-AgentExecProposed-notice');
  private readonly _reject: HTMLButtonElement;
  private _rendered = '';
  private _shown: IEditOfRound | null = null;
  private readonly _what = element('div', '');
  private readonly _why = element('bdi', 'jp-AgentExecProposed-why');
}

/** The options of a view. */
export namespace ProposedEditView {
  /** What it is made of. */
  export interface IOptions {
    trans: TranslationBundle;
    editors: IEditorServices;
    /** The type of the notebook's code. */
    mimeType(): string;
    decide(what: 'keep' | 'reject', more: IDecisionDetails): Promise<void>;
  }
}

/** Why a change is not kept yet. */
function unseenText(trans: TranslationBundle): string {
  return trans.__('To keep it, scroll to the end of what is new.');
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
  const type = after?.cell_type ?? 'code';
  switch (kind) {
    case 'insert':
      return trans.__('New %1 cell', type);
    case 'delete':
      return trans.__('Delete this cell');
    case 'clear_outputs':
      return trans.__('Clear the outputs of this cell');
    case 'move':
      return trans.__('Move this cell %1', where);
    case 'change':
      return [
        before?.cell_type === after?.cell_type
          ? trans.__('Change this cell')
          : trans.__('Change this cell to %1', type),
        moved && trans.__('Move this cell %1', where)
      ]
        .filter(Boolean)
        .join(' · ');
  }
}
