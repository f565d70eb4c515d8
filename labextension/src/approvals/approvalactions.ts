/** The answers that a person can give to what asks. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { element, linkButton, styledButton } from '../ui/elements';
import { untilRestartText } from './approvalwording';
import type { SourceEditor } from '../ui/sourceeditor';

/**
 * Milliseconds for which no button answers after something new is shown.
 *
 * What asks appears by itself, and can push a button under a pointer that was
 * just about to click on something else.
 */
export const GUARD = 500;

/** Buttons, and what has to be done before they answer. */
export class ApprovalActions extends Widget {
  constructor(private readonly _options: ApprovalActions.IOptions) {
    super();
    this.addClass('jp-AgentExecApproval-actions');
    this._unseen.setAttribute('role', 'status');
    const { trans } = _options;
    const end = trans.__('Show the end of the code');
    this._showEnd = linkButton(end, () => _options.unseen()?.showEnd());
  }

  override dispose(): void {
    clearTimeout(this._timer);
    super.dispose();
  }

  /** Offer what can be granted and approved now. */
  protected override onUpdateRequest(): void {
    this._renderButtons();
    const { asks, coversMore } = this._options;
    const isOffered = this._choices.length > 3;
    if (isOffered !== (asks() || coversMore())) {
      const at = this._choices.findIndex(
        each => each === document.activeElement
      );
      this.reset();
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

  /** Create the buttons again, for what can be answered now. */
  reset(): void {
    const { approve, asks, coversMore, edit, isEditing } = this._options;
    const { grant, once, reject, restore, trans } = this._options;
    const other = (label: string, act: () => unknown, approves = false) =>
      this._createButton(label, 'reject', act, approves);
    const restoreSource = () => {
      restore();
      this.reset();
      this._choices[1].focus();
    };
    const editSource = () => {
      edit();
      this.reset();
    };
    this._choices = [
      this._createButton(trans.__('Approve'), 'accept', approve, true),
      isEditing()
        ? other(trans.__('Discard edits'), restoreSource)
        : other(trans.__('Edit'), editSource),
      other(trans.__('Reject…'), reject),
      ...(asks()
        ? [other(trans.__('Approve and let it run…'), grant, true)]
        : coversMore()
          ? [other(trans.__('Only this once'), once, true)]
          : [])
    ];
    if (coversMore()) {
      this._choices[0].title = untilRestartText(trans);
    }
    this.node.replaceChildren(...this._choices, this._unseen, this._showEnd);
    this.guard();
  }

  /** Take the keyboard. */
  focus(): void {
    this._choices[0]?.focus();
  }

  /** Approve what is shown, if it was seen to its end. */
  approve(): void {
    this._answer(this._options.approve, true);
  }

  /** @param approves - Whether the code has to be seen to its end before. */
  private _createButton(
    label: string,
    kind: 'accept' | 'reject',
    act: () => unknown,
    approves: boolean
  ): HTMLButtonElement {
    const button = styledButton(label, kind, () => this._answer(act, approves));
    if (approves) {
      button.dataset.approves = 'true';
    }
    return button;
  }

  private _answer(act: () => unknown, approves = false): void {
    const isUnseen = approves && this._options.unseen() !== undefined;
    if (!this._guarded && !this._busy && !isUnseen) {
      this.guard(); // a second click is not for what the first one opens
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
  }

  private _busy = false;
  private _choices: HTMLButtonElement[] = [];
  private _guarded = false;
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
    /** Code that would run and was not seen to its end. */
    unseen: () => SourceEditor | undefined;
    /** Whether a person edits the source. */
    isEditing: () => boolean;
    /** Let a person edit the source. */
    edit: () => void;
    /** Show the agent's source again. */
    restore: () => void;
    /** Do not let it run, after a question for the reason. */
    reject: () => Promise<void>;
    /** Approve what is shown and let its agent run more, after a question for how long. */
    grant: () => Promise<void>;
  }
}
