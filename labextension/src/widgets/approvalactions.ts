/** The answers that a person can give to what asks. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { countHidden } from '../model/plainsource';
import type { IExecution } from '../tokens';
import { element, linkButton, styledButton } from './elements';

/**
 * Milliseconds for which no button answers after something new is shown.
 *
 * What asks appears by itself, and can push a button under a pointer that was
 * just about to click on something else. A double click must not answer the
 * question that the first click opened either.
 */
export const GUARD = 500;

/** For how many minutes all of a session can be approved. */
const MINUTES = [5, 15, 60];

/** Buttons, and a form for those answers that need more words. */
export class ApprovalActions extends Widget {
  constructor(private readonly _options: ApprovalActions.IOptions) {
    super();
    this.addClass('jp-AgentExecApproval-actions');
    this._editor.spellcheck = false;
    this._editor.dir = 'ltr';
    this._editor.rows = 8;
    this._reason.maxLength = 5000;
    this._reason.type = 'text';
  }

  override dispose(): void {
    clearTimeout(this._timer);
    super.dispose();
  }

  /** Offer all answers to a source anew. */
  reset({ id, source, source_sha256 }: IExecution): void {
    this._source = source;
    this._draft = `${id} ${source_sha256}`;
    this._editor.value = this._options.drafts.get(this._draft) ?? source;
    this._editor.setSelectionRange(0, 0);
    this._reason.value = '';
    this._showChoice();
  }

  /** Answer nothing for a moment: what can be seen has changed. */
  guard(): void {
    clearTimeout(this._timer);
    this._guarded = true;
    this._timer = setTimeout(() => {
      this._guarded = false;
      this._renderButtons();
    }, GUARD);
    this._renderButtons();
  }

  /** Whether an answer is on its way. */
  set busy(value: boolean) {
    this._busy = value;
    this.node.setAttribute('aria-busy', String(value));
    this._renderButtons();
  }

  /** Go back from a form; false if there is none. */
  back(): boolean {
    const { _opener } = this;
    if (this._busy || _opener === null) {
      return false;
    }
    this._showChoice();
    this._choices[_opener]?.focus();
    return true;
  }

  private _showChoice(): void {
    const { trans } = this._options;
    this._opener = null;
    const open = (label: string, show: (opener: number) => void, at: number) =>
      styledButton(label, 'reject', () => this._answer(() => show(at)));
    this._choices = [
      styledButton(trans.__('Approve'), 'accept', () =>
        this._answer(() => this._options.approve())
      ),
      open(trans.__('Edit and approve…'), at => this._showEditor(at), 1),
      open(trans.__('Reject…'), at => this._showReason(at), 2),
      open(trans.__('Approve all…'), at => this._showMinutes(at), 3)
    ];
    this._show(...this._choices);
  }

  private _showEditor(opener: number): void {
    const { trans } = this._options;
    this._opener = opener;
    const note = element('div', 'jp-AgentExecApproval-note');
    const renderNote = () => {
      const hidden = countHidden(this._editor.value);
      note.textContent = [
        trans.__(
          'The history records both the agent’s source and the source that you approve.'
        ),
        hidden > 0
          ? trans._n(
              'It contains %1 invisible or look-alike character.',
              'It contains %1 invisible or look-alike characters.',
              hidden,
              hidden
            )
          : ''
      ].join(' ');
    };
    this._editor.oninput = () => {
      this._options.drafts.set(this._draft, this._editor.value);
      renderNote();
    };
    renderNote();
    const approve = () => this._answer(() => this._approveEdited());
    this._editor.onkeydown = event => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        approve();
      }
    };
    const label = element('label', '', trans.__('Source to run instead'));
    label.append(this._editor);
    this._show(
      label,
      note,
      styledButton(trans.__('Approve edited source'), 'accept', approve),
      this._createBack()
    );
    this._editor.focus();
  }

  /** Approve what is in the editor; what is as it was is not an edit. */
  private _approveEdited(): Promise<void> {
    const { approve } = this._options;
    const { value } = this._editor;
    // An editor has one kind of line end only.
    const same = value === this._source.replace(/\r\n?/g, '\n');
    return same ? approve() : approve(value);
  }

  private _showReason(opener: number): void {
    const { trans } = this._options;
    this._opener = opener;
    const reject = () =>
      this._answer(() => this._options.reject(this._reason.value.trim()));
    this._reason.onkeydown = event => {
      if (event.key === 'Enter' && !event.isComposing) {
        event.preventDefault();
        reject();
      }
    };
    const text = trans.__('Reason for the agent (optional)');
    const label = element('label', '', text);
    label.append(this._reason);
    this._show(
      label,
      styledButton(trans.__('Reject'), 'warn', reject),
      this._createBack()
    );
    this._reason.focus();
  }

  private _showMinutes(opener: number): void {
    const { trans } = this._options;
    this._opener = opener;
    const text = trans.__(
      'Approve this and all further executions of the session for'
    );
    const buttons = MINUTES.map(minutes =>
      styledButton(trans.__('%1 minutes', minutes), 'reject', () =>
        this._answer(() => this._options.grant(minutes))
      )
    );
    this._show(
      element('div', 'jp-AgentExecApproval-note', text),
      ...buttons,
      this._createBack()
    );
    buttons[0].focus();
  }

  private _createBack(): HTMLButtonElement {
    return linkButton(this._options.trans.__('Back'), () => this.back());
  }

  private _show(...nodes: HTMLElement[]): void {
    this.node.replaceChildren(...nodes);
    this.guard();
  }

  private _answer(act: () => unknown): void {
    if (!this._guarded && !this._busy) {
      act();
    }
  }

  /** Tell which buttons answer; they keep the focus while they do not. */
  private _renderButtons(): void {
    const disabled = String(this._guarded || this._busy);
    this.node.querySelectorAll('button.jp-mod-styled').forEach(button => {
      button.setAttribute('aria-disabled', disabled);
    });
    this._editor.readOnly = this._reason.readOnly = this._busy;
  }

  private _busy = false;
  private _choices: HTMLButtonElement[] = [];
  private readonly _editor = element('textarea', 'jp-AgentExecApproval-editor');
  private _draft = '';
  private _guarded = false;
  /** Which of the choices has opened the form that is shown. */
  private _opener: number | null = null;
  private readonly _reason = element('input', 'jp-mod-styled');
  private _source = '';
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

/** The options of answers. */
export namespace ApprovalActions {
  /** What they are made of. */
  export interface IOptions {
    trans: TranslationBundle;
    /** What people are about to approve instead, by what was asked. */
    drafts: Map<string, string>;
    /** Let it run, or something else instead. */
    approve: (source?: string) => Promise<void>;
    /** Do not let it run; the reason may be empty. */
    reject: (reason: string) => Promise<void>;
    /** Let all of the session run for so many minutes. */
    grant: (minutes: number) => Promise<void>;
  }
}
