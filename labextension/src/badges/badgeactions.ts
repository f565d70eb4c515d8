/** What a person can do about an agent's cell in a notebook. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { stopIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import { isEdited } from '../api/cellrecord';
import { stopText } from '../atwork/atworkwording';
import { CommandIDs, isFinal } from '../tokens';
import type { Execute, ICellRecord } from '../tokens';
import type { ICellReviews } from './badge';
import { iconButton, labelledButton, linkButton } from '../ui/elements';
import { activityIcon } from '../ui/icons';
import { menuButton } from '../ui/menu';
import type { MenuItem, OpenMenu } from '../ui/menu';
import { reviewItems } from '../review/reviewwording';

/** The buttons of a badge. */
export class BadgeActions extends Widget {
  constructor(private readonly _options: BadgeActions.IOptions) {
    super();
    this.addClass('jp-AgentExecBadge-actions');
    const { menuItems, openMenu, trans } = _options;
    this._stop = labelledButton(stopIcon, trans.__('Stop'), () =>
      this._run(CommandIDs.interrupt)
    );
    this._accept = linkButton(trans.__('Accept outputs'), () =>
      this._run(CommandIDs.acceptOutputs)
    );
    this._accept.title = trans.__(
      'Show the original outputs, which may run scripts, and trust this cell'
    );
    const more = menuButton(
      trans.__('More actions'),
      () => menuItems?.(_options.cellId) ?? this._menuItems(),
      openMenu
    );
    this._buttons = menuItems
      ? [more]
      : [
          this._accept,
          iconButton(activityIcon, trans.__('Open Agent Session'), () =>
            this._run(CommandIDs.openSession)
          ),
          more
        ];
    this.node.append(this._stop, ...this._buttons);
    this.tabStop = false;
  }

  /** Whether the Tab key stops at the buttons. */
  set tabStop(value: boolean) {
    for (const button of this._buttons) {
      button.tabIndex = value ? 0 : -1;
    }
  }

  /**
   * Offer what makes sense for a record; nothing for a person's outputs.
   *
   * @param runs - Whether the server knows that it runs now.
   */
  render(record: ICellRecord, runAgain: boolean, runs: boolean): void {
    this._record = record;
    const { agent, outputs, status } = record;
    this._stop.title = stopText(agent, record, this._options.trans);
    this._stop.setAttribute('aria-label', this._stop.title);
    this._show(this._stop, runs);
    const isHeld = outputs === 'held' && isFinal(status) && !runAgain;
    this._show(this._accept, isHeld);
  }

  private _show(button: HTMLButtonElement, isShown: boolean): void {
    if (!isShown && button === document.activeElement) {
      // The keyboard stays at the cell.
      this.node.closest<HTMLElement>('.jp-Cell')?.focus();
    }
    button.hidden = !isShown;
  }

  /** What is not needed at the cell is in its session's document. */
  private _menuItems(): MenuItem[] {
    const { reviews, trans } = this._options;
    const { execution_id = '', status = 'queued' } = this._record ?? {};
    const args = this._args();
    const source = this._options.sharedModel.getSource();
    const isChanged = this._record && isEdited(this._record, source);
    return [
      { command: CommandIDs.openText, args },
      { command: CommandIDs.openImage, args: {} },
      ...(isChanged
        ? [
            {
              command: CommandIDs.showDifference,
              args: { execution_id, source }
            }
          ]
        : []),
      ...(isFinal(status)
        ? [
            null,
            { command: CommandIDs.undoRound, args },
            ...reviewItems(execution_id, reviews.get(execution_id), trans)
          ]
        : [])
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

  private readonly _accept: HTMLButtonElement;
  private readonly _buttons: readonly HTMLButtonElement[];
  private readonly _stop: HTMLButtonElement;
  private _record: ICellRecord | null = null;
}

/** The options of a badge's buttons. */
export namespace BadgeActions {
  /** What they are made of. */
  export interface IOptions {
    cellId: string;
    /** The cell's own. */
    sharedModel: { getSource: () => string };
    trans: TranslationBundle;
    execute: Execute;
    openMenu: OpenMenu;
    reviews: ICellReviews;
    /** What the menu of a cell has, of a session's document. */
    menuItems?: (cellId: string) => readonly MenuItem[];
  }
}
