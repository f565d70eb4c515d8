/** What a person can do about an agent's cell in a notebook. */
import { ellipsesIcon } from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs, isFinal } from '../tokens';
import type { Execute, ICellRecord } from '../tokens';
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
      trans.__('Bring the original outputs into the notebook and trust them'),
      () => this._run(CommandIDs.acceptOutputs)
    );
    this._discard = this._createButton(
      trans.__('Discard outputs'),
      trans.__('Take the outputs out of the notebook; the history keeps them'),
      () => this._run(CommandIDs.discardOutputs)
    );
    this._createIconButton(
      activityIcon,
      trans.__('Show in Agent Activity'),
      () => this._run(CommandIDs.openPanel)
    );
    const more = this._createIconButton(
      ellipsesIcon,
      trans.__('More about this agent’s cell'),
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
    { hasOutputs, runAgain }: { hasOutputs: boolean; runAgain: boolean }
  ): void {
    this._record = record;
    const { outputs, status } = record;
    const decidable = isFinal(status) && !runAgain;
    this._accept.hidden =
      !decidable || (outputs !== 'held' && outputs !== 'discarded');
    this._discard.hidden = !decidable || outputs === 'discarded' || !hasOutputs;
    // With something to decide, both answers can be seen at once.
    this._discard.classList.toggle('jp-mod-quiet', outputs !== 'held');
  }

  private _menuItems(): MenuItem[] {
    const outputs: MenuItem[] = [
      { command: CommandIDs.acceptOutputs, args: this._args() },
      { command: CommandIDs.discardOutputs, args: this._args() }
    ];
    return [
      { command: CommandIDs.openPanel, args: this._args() },
      { command: CommandIDs.openText, args: this._args() },
      null,
      ...outputs.filter((_, at) => ![this._accept, this._discard][at].hidden),
      { command: CommandIDs.acceptAllOutputs, args: this._args() },
      null,
      { command: CommandIDs.interrupt, args: this._args() }
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
  }
}
