/** What a person can do about an agent's cell in a notebook. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { isEdited } from '../api/cellrecord';
import { CommandIDs, isFinal } from '../tokens';
import type { Execute, ICellRecord } from '../tokens';
import type { ICellReviews } from './badge';
import { iconButton, linkButton } from '../ui/elements';
import { activityIcon } from '../ui/icons';
import { menuButton } from '../ui/menu';
import type { MenuItem, OpenMenu } from '../ui/menu';
import { reviewItems } from '../review/reviewwording';

/** The buttons of a badge. */
export class BadgeActions extends Widget {
  constructor(private readonly _options: BadgeActions.IOptions) {
    super();
    this.addClass('jp-AgentExecBadge-actions');
    const { openMenu, trans } = _options;
    this._accept = linkButton(trans.__('Accept outputs'), () =>
      this._run(CommandIDs.acceptOutputs)
    );
    this._accept.title = trans.__(
      'Show the original outputs, which may run scripts, and trust this cell'
    );
    this._buttons = [
      this._accept,
      iconButton(activityIcon, trans.__('Open Agent Session'), () =>
        this._run(CommandIDs.openSession)
      ),
      menuButton(trans.__('More actions'), () => this._menuItems(), openMenu)
    ];
    this.node.append(...this._buttons);
    this.tabStop = false;
  }

  /** Whether the Tab key stops at the buttons. */
  set tabStop(value: boolean) {
    for (const button of this._buttons) {
      button.tabIndex = value ? 0 : -1;
    }
  }

  /** Offer what makes sense for a record; nothing for a person's outputs. */
  render(record: ICellRecord, runAgain: boolean): void {
    this._record = record;
    const { outputs, status } = record;
    const isHeld = outputs === 'held' && isFinal(status) && !runAgain;
    if (!isHeld && this._accept === document.activeElement) {
      // The keyboard stays at the cell.
      this.node.closest<HTMLElement>('.jp-Cell')?.focus();
    }
    this._accept.hidden = !isHeld;
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
        : [{ command: CommandIDs.interrupt, args }])
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
  }
}
