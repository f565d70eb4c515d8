/** What a user can do about an execution in its session. */
import { stopIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import { CommandIDs, isRunning } from '../tokens';
import type { IExecutionModel } from '../tokens';
import { stopText } from '../atwork/atworkwording';
import type { IBadgeActions } from '../badges/badge';
import { element, labelledButton } from '../ui/elements';
import { menuButton } from '../ui/menu';
import type { MenuItem } from '../ui/menu';
import { reviewItems } from '../review/reviewwording';
import type { ICellOptions } from './celloptions';

/** A button that stops the agent while it runs this, and a menu. */
export class CellActions extends Widget implements IBadgeActions {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _options: ICellOptions
  ) {
    super();
    this.addClass('jp-AgentExecBadge-actions');
    const { execute, openMenu, trans } = _options;
    const { agent, seq, session_id } = _model.execution;
    const text = element('bdi', '', stopText(agent, seq, trans));
    this._stop = labelledButton(stopIcon, text, () => {
      void execute(CommandIDs.interrupt, { session_id });
    });
    this._menu = menuButton(
      trans.__('More actions'),
      () => this._menuItems(),
      openMenu
    );
    this.node.append(this._stop, this._menu);
    this.tabStop = false;
    this.render();
  }

  /** Whether the Tab key stops at the menu. */
  set tabStop(value: boolean) {
    this._menu.tabIndex = value ? 0 : -1;
  }

  render(): void {
    const runs = isRunning(this._model.execution.status);
    if (!runs && this._stop === document.activeElement) {
      // The keyboard stays at the cell.
      this.node.closest<HTMLElement>('.jp-Cell')?.focus();
    }
    this._stop.hidden = !runs;
  }

  private _menuItems(): MenuItem[] {
    const { id, review, trial } = this._model.execution;
    const one = { execution_id: id };
    return [
      { command: CommandIDs.copySource, args: one },
      ...(trial ? [{ command: CommandIDs.insertAndRun, args: one }] : []),
      { command: CommandIDs.insertCells, args: one },
      null,
      ...reviewItems(id, review, this._options.trans)
    ];
  }

  private readonly _menu: HTMLButtonElement;
  private readonly _stop: HTMLButtonElement;
}
