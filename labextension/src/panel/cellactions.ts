/** What a user can do about an execution in the panel. */
import { stopIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import { CommandIDs, isRunning } from '../tokens';
import type { IExecutionModel } from '../tokens';
import { stopText } from '../widgets/atworkwording';
import type { IBadgeActions } from '../widgets/badge';
import { element, labelledButton } from '../widgets/elements';
import { menuButton } from '../widgets/menu';
import type { MenuItem } from '../widgets/menu';
import { reviewItems } from '../widgets/review';
import type { SessionNotebook } from './notebook';

/** A button that stops the agent while it runs this, and a menu. */
export class CellActions extends Widget implements IBadgeActions {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _options: SessionNotebook.IOptions
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
      this.node.closest<HTMLElement>('[role="article"]')?.focus();
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
      ...reviewItems(one, review, this._options.trans)
    ];
  }

  private readonly _menu: HTMLButtonElement;
  private readonly _stop: HTMLButtonElement;
}
