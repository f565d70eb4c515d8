/** The answers that a person can give to what asks. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { GrantSpan } from '../tokens';
import { element, linkButton, styledButton } from '../ui/elements';
import { untilRestartText } from './approvalwording';
import { createReason } from '../ui/reason';
import type { IReason } from '../ui/reason';
import type { SourceEditor } from '../ui/sourceeditor';

/**
 * Milliseconds for which no button answers after something new is shown.
 *
 * What asks appears by itself, and can push a button under a pointer that was
 * just about to click on something else. A double click must not answer the
 * question that the first click opened either.
 */
export const GUARD = 500;

/** Buttons, and a form for those answers that need more words. */
export class ApprovalActions extends Widget {
  constructor(private readonly _options: ApprovalActions.IOptions) {
    super();
    this.addClass('jp-AgentExecApproval-actions');
    this._unseen.setAttribute('role', 'status');
    const { trans } = _options;
    this._reason = createReason(() => this._rejectShown(), trans);
    const end = trans.__('Show the end of the code');
    this._showEnd = linkButton(end, () => _options.unseen()?.showEnd());
  }

  override dispose(): void {
    clearTimeout(this._timer);
    super.dispose();
  }

  /** Offer all answers to a source anew. */
  reset(): void {
    this._reason.input.value = '';
    this._showChoice();
  }

  /** Offer what can be granted and approved now, unless a form is open. */
  protected override onUpdateRequest(): void {
    this._renderButtons();
    const { asks, coversMore } = this._options;
    const isOffered = this._choices.length > 3;
    if (this._opener === null && isOffered !== (asks() || coversMore())) {
      const at = this._choices.findIndex(
        each => each === document.activeElement
      );
      this._showChoice();
      this._choices[at]?.focus();
    }
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
    const { approve, asks, coversMore, edit, isEditing, once, restore, trans } =
      this._options;
    this._opener = null;
    const open = (label: string, show: (opener: number) => void, at: number) =>
      styledButton(label, 'reject', () => this._answer(() => show(at)));
    const restoreSource = () => {
      restore();
      this._showChoice();
      this._choices[1].focus();
    };
    const editSource = () => {
      edit();
      this._showChoice();
    };
    this._choices = [
      this._createApproving(trans.__('Approve'), 'accept', approve),
      isEditing()
        ? styledButton(trans.__('Discard edits'), 'reject', () =>
            this._answer(restoreSource)
          )
        : styledButton(trans.__('Edit'), 'reject', () =>
            this._answer(editSource)
          ),
      open(trans.__('Reject…'), at => this._showReason(at), 2),
      ...(asks()
        ? [
            open(
              trans.__('Approve and let it run…'),
              at => this._showSpans(at),
              3
            )
          ]
        : coversMore()
          ? [this._createApproving(trans.__('Only this once'), 'reject', once)]
          : [])
    ];
    if (coversMore()) {
      this._choices[0].title = untilRestartText(trans);
    }
    this._show(...this._choices);
  }

  /** Take the keyboard. */
  focus(): void {
    this._choices[0]?.focus();
  }

  /** Approve what is shown, if it was seen to its end. */
  approve(): void {
    this._answer(this._options.approve, true);
  }

  private _createApproving(
    label: string,
    kind: 'accept' | 'reject',
    act: () => unknown
  ): HTMLButtonElement {
    const button = styledButton(label, kind, () => this._answer(act, true));
    button.dataset.approves = 'true';
    return button;
  }

  private _showReason(opener: number): void {
    const { trans } = this._options;
    this._opener = opener;
    this._show(
      this._reason.label,
      styledButton(trans.__('Reject'), 'warn', () => this._rejectShown()),
      this._createBack()
    );
    this._reason.input.focus();
  }

  private _rejectShown(): void {
    this._answer(() => this._options.reject(this._reason.text()));
  }

  private _showSpans(opener: number): void {
    const { agentName, grant, trans } = this._options;
    this._opener = opener;
    const text = trans.__(
      'Approve this, and let %1 run code in this kernel without asking',
      agentName()
    );
    const spans: [GrantSpan, string][] = [
      ['restart', trans.__('Until the kernel restarts')],
      ['hour', trans.__('For an hour')]
    ];
    const buttons = spans.map(([span, label]) =>
      this._createApproving(label, 'reject', () => grant(span))
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
    this.node.replaceChildren(...nodes, this._unseen, this._showEnd);
    this.guard();
  }

  private _answer(act: () => unknown, approves = false): void {
    const isUnseen = approves && this._options.unseen() !== undefined;
    if (!this._guarded && !this._busy && !isUnseen) {
      act();
    }
  }

  /** Tell which buttons answer; they keep the focus while they do not. */
  private _renderButtons(): void {
    const approving = '[data-approves]';
    const { trans, unseen } = this._options;
    const isDisabled = this._guarded || this._busy;
    const isUnseen = unseen() !== undefined;
    this.node.querySelectorAll('button.jp-mod-styled').forEach(button => {
      const waits = isUnseen && button.matches(approving);
      button.setAttribute('aria-disabled', String(isDisabled || waits));
    });
    const isTold =
      isUnseen && !isDisabled && this.node.querySelector(approving) !== null;
    this._unseen.textContent = isTold
      ? trans.__('To approve it, scroll to the end of the code.')
      : '';
    this._showEnd.hidden = !isTold;
    this._reason.input.readOnly = this._busy;
  }

  private _busy = false;
  private _choices: HTMLButtonElement[] = [];
  private _guarded = false;
  /** Which of the choices has opened the form that is shown. */
  private _opener: number | null = null;
  private readonly _reason: IReason;
  private readonly _showEnd: HTMLButtonElement;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private readonly _unseen = element('div', 'jp-AgentExecApproval-note');
}

/** The options of answers. */
export namespace ApprovalActions {
  /** What they are made of. */
  export interface IOptions {
    trans: TranslationBundle;
    /** Let what is shown run. */
    approve: () => unknown;
    /** Whether an approval is about just this, so that more can be granted. */
    asks: () => boolean;
    /** Whether an approval lets the agent run more, unless it is for once. */
    coversMore: () => boolean;
    /** Approve what is shown, and nothing else. */
    once: () => Promise<void>;
    /** What the agent calls itself. */
    agentName: () => string;
    /** Code that would run and was not seen to its end. */
    unseen: () => SourceEditor | undefined;
    /** Whether a person edits the source. */
    isEditing: () => boolean;
    /** Let a person edit the source. */
    edit: () => void;
    /** Show the agent's source again. */
    restore: () => void;
    /** Do not let it run; the reason may be empty. */
    reject: (reason: string) => Promise<void>;
    /** Approve what is shown, and let its agent run more for so long. */
    grant: (span: GrantSpan) => Promise<void>;
  }
}
