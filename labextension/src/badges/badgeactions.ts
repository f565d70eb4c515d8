/** What a person can do about an agent's cell in a notebook. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs, isFinal } from '../tokens';
import type { Execute, ICellRecord } from '../tokens';
import type { ICellReviews } from './badge';
import { iconButton, linkButton } from '../ui/elements';
import { activityIcon } from '../ui/icons';
import { menuButton } from '../ui/menu';
import type { MenuItem, OpenMenu } from '../ui/menu';
import { showText } from '../ui/notebookwording';
import { reviewItems } from '../review/reviewwording';

/** The buttons of a badge. */
export class BadgeActions extends Widget {
  constructor(private readonly _options: BadgeActions.IOptions) {
    super();
    this.addClass('jp-AgentExecBadge-actions');
    const { trans } = _options;
    this._keep = this._createButton(
      trans.__('Keep'),
      trans.__(
        'Keep the agent’s cell, show its original outputs and trust them'
      ),
      () => this._run(CommandIDs.keep)
    );
    this._discard = this._createButton(
      trans.__('Discard'),
      trans.__(
        'Remove the agent’s cell from the notebook; the history keeps it'
      ),
      () => this._run(CommandIDs.discard)
    );
    this._undo = this._createButton(trans.__('Undo'), '', () =>
      this._run(CommandIDs.undo)
    );
    this._add(
      iconButton(activityIcon, trans.__('Show Agent Activity'), () =>
        this._run(CommandIDs.openPanel)
      )
    );
    this._add(
      menuButton(
        trans.__('More actions'),
        () => this._menuItems(),
        _options.openMenu
      )
    );
    this.tabStop = false;
  }

  /** Whether the Tab key stops at the buttons. */
  set tabStop(value: boolean) {
    for (const button of this._buttons) {
      button.tabIndex = value ? 0 : -1;
    }
  }

  /** Offer what makes sense for a record; nothing for a person's outputs. */
  render(record: ICellRecord, { edited, runAgain }: BadgeActions.IState): void {
    const { trans } = this._options;
    this._record = record;
    const { held, outputs, status } = record;
    const isOurs = isFinal(status) && !runAgain;
    const isDecided = outputs === 'accepted' || outputs === 'discarded';
    const isHeld = outputs === 'held';
    this._keep.textContent = isHeld ? showText(held, trans) : trans.__('Keep');
    this._keep.hidden = !isOurs || isDecided || (edited && !isHeld);
    this._discard.hidden = !isOurs || isDecided || edited;
    this._undo.hidden = !isOurs || !isDecided;
    // With something to decide, both answers can be seen at once.
    for (const button of [this._keep, this._discard, this._undo]) {
      button.classList.toggle('jp-mod-quiet', !isHeld);
    }
  }

  /** At most six: what is not needed at the cell is in the panel. */
  private _menuItems(): MenuItem[] {
    const { session_id = '', status = 'queued' } = this._record ?? {};
    const args = this._args();
    if (!isFinal(status)) {
      return [
        { command: CommandIDs.openText, args },
        { command: CommandIDs.interrupt, args }
      ];
    }
    return [
      { command: CommandIDs.openText, args },
      null,
      ...this._reviewItems(),
      null,
      { command: CommandIDs.keep, args: { session_id } },
      { command: CommandIDs.discard, args: { session_id } }
    ];
  }

  private _reviewItems(): MenuItem[] {
    const { reviews, trans } = this._options;
    const { execution_id = '' } = this._record ?? {};
    return reviewItems({ execution_id }, reviews.get(execution_id), trans);
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
    const button = this._add(linkButton(label, act));
    button.title = title;
    return button;
  }

  private _add(button: HTMLButtonElement): HTMLButtonElement {
    this._buttons.push(button);
    this.node.append(button);
    return button;
  }

  private readonly _buttons: HTMLButtonElement[] = [];
  private readonly _discard: HTMLButtonElement;
  private readonly _keep: HTMLButtonElement;
  private readonly _undo: HTMLButtonElement;
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
    reviews: ICellReviews;
  }

  /** How a cell is, beside its record. */
  export interface IState {
    edited: boolean;
    runAgain: boolean;
  }
}
