/** What a person can do about an agent's cell in a notebook. */
import { ellipsesIcon } from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { Reviews } from '../model/reviews';
import { CommandIDs, isFinal } from '../tokens';
import type { Execute, ICellRecord, Verdict } from '../tokens';
import { activityIcon } from './icons';
import type { MenuItem, OpenMenu } from './menu';

/** The buttons of a badge. */
export class BadgeActions extends Widget {
  constructor(private readonly _options: BadgeActions.IOptions) {
    super();
    this.addClass('jp-AgentExecBadge-actions');
    const { trans } = _options;
    this._accept = this._createButton(
      trans.__('Accept outputs'),
      trans.__('Show the original outputs in the notebook and trust them'),
      () => this._run(CommandIDs.acceptOutputs)
    );
    this._discard = this._createButton(
      trans.__('Discard outputs'),
      trans.__('Remove the outputs from the notebook; the history keeps them'),
      () => this._run(CommandIDs.discardOutputs)
    );
    this._createIconButton(
      activityIcon,
      trans.__('Show in Agent Activity'),
      () => this._run(CommandIDs.openPanel)
    );
    const more = this._createIconButton(
      ellipsesIcon,
      trans.__('More actions for this agent’s cell'),
      () => this._options.openMenu(this._menuItems(), more)
    );
    more.setAttribute('aria-haspopup', 'menu');
    this.tabStop = false;
  }

  /** Whether the Tab key stops at the buttons. */
  set tabStop(value: boolean) {
    for (const button of this._buttons) {
      button.tabIndex = value ? 0 : -1;
    }
  }

  /** Offer what makes sense for a record; nothing for a person's outputs. */
  render(
    record: ICellRecord,
    { edited, hasOutputs, runAgain }: BadgeActions.IState
  ): void {
    this._record = record;
    const { outputs, status } = record;
    const decidable = isFinal(status) && !runAgain;
    this._isDecided =
      decidable && (outputs === 'accepted' || outputs === 'discarded');
    this._isLeft = decidable && !edited;
    this._accept.hidden =
      !decidable || (outputs !== 'held' && outputs !== 'discarded');
    this._discard.hidden = !decidable || outputs === 'discarded' || !hasOutputs;
    // With something to decide, both answers can be seen at once.
    this._discard.classList.toggle('jp-mod-quiet', outputs !== 'held');
  }

  private _menuItems(): MenuItem[] {
    const args = this._args();
    const outputs: MenuItem[] = [
      { command: CommandIDs.acceptOutputs, args },
      { command: CommandIDs.discardOutputs, args }
    ];
    return [
      { command: CommandIDs.openPanel, args },
      { command: CommandIDs.openText, args },
      null,
      ...outputs.filter((_, at) => ![this._accept, this._discard][at].hidden),
      ...(this._isDecided
        ? [{ command: CommandIDs.restoreOutputs, args }]
        : []),
      { command: CommandIDs.acceptAllOutputs, args },
      { command: CommandIDs.discardAllOutputs, args },
      null,
      ...(this._isLeft ? [{ command: CommandIDs.discardCell, args }] : []),
      { command: CommandIDs.discardAllCells, args },
      ...this._reviewItems(),
      null,
      { command: CommandIDs.interrupt, args }
    ];
  }

  /** Verdicts that were not given, and a way back from the one that was. */
  private _reviewItems(): MenuItem[] {
    const { reviews, trans } = this._options;
    const { execution_id = '', status = 'queued' } = this._record ?? {};
    if (!isFinal(status)) {
      return [];
    }
    const review = reviews.get(execution_id);
    const own = review?.whole_session ? null : review;
    const item = (verdict: Verdict | null, label: string): MenuItem => ({
      command: CommandIDs.review,
      args: { execution_id, verdict, label }
    });
    const comment = {
      command: CommandIDs.comment,
      args: { execution_id, label: trans.__('Comment…') }
    };
    return [
      null,
      ...(own?.verdict === 'approved'
        ? []
        : [item('approved', trans.__('Approve'))]),
      ...(own?.verdict === 'flagged'
        ? []
        : [item('flagged', trans.__('Flag'))]),
      ...(own?.verdict ? [item(null, trans.__('Remove Verdict'))] : []),
      comment
    ];
  }

  private _args(): Record<string, string> {
    const { execution_id = '', session_id = '', cell_id } = this._record ?? {};
    return {
      execution_id,
      session_id,
      cell_id: cell_id ?? this._options.cellId
    };
  }

  private _run(command: string): void {
    void this._options.execute(command, this._args());
  }

  private _createButton(
    label: string,
    title: string,
    act: () => void
  ): HTMLButtonElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jp-AgentExec-link';
    button.textContent = label;
    button.title = title;
    button.addEventListener('click', act);
    this._buttons.push(button);
    this.node.append(button);
    return button;
  }

  private _createIconButton(
    icon: LabIcon,
    label: string,
    act: () => void
  ): HTMLButtonElement {
    const button = this._createButton('', label, act);
    button.className = 'jp-AgentExec-iconButton';
    button.setAttribute('aria-label', label);
    icon.element({ container: button });
    return button;
  }

  private readonly _accept: HTMLButtonElement;
  private readonly _buttons: HTMLButtonElement[] = [];
  private readonly _discard: HTMLButtonElement;
  private _isDecided = false;
  private _isLeft = false;
  private _record: ICellRecord | null = null;
}

/** The options of a badge's buttons. */
export namespace BadgeActions {
  /** What they are made of. */
  export interface IOptions {
    cellId: string;
    trans: TranslationBundle;
    execute: Execute;
    openMenu: OpenMenu;
    reviews: Reviews;
  }

  /** How a cell is, beside its record. */
  export interface IState {
    edited: boolean;
    hasOutputs: boolean;
    runAgain: boolean;
  }
}
