/** Buttons at the end of a cell's header in the panel. */
import { stopIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs, isRunning } from '../tokens';
import type { Execute, IExecutionModel } from '../tokens';
import { stopText } from './atworkwording';
import type { CellPart } from './cell';
import { element, labelledButton } from './elements';
import { menuButton } from './menu';
import type { MenuItem, OpenMenu } from './menu';
import { reviewItems } from './review';

/** A part of the panel's cells: a menu of what can be done with one. */
export function copyingPart(
  openMenu: OpenMenu,
  trans: TranslationBundle
): CellPart {
  return model => {
    const one = { execution_id: model.execution.id };
    const items = (): MenuItem[] => [
      { command: CommandIDs.copySource, args: one },
      ...(model.execution.trial
        ? [{ command: CommandIDs.insertAndRun, args: one }]
        : []),
      { command: CommandIDs.insertCells, args: one },
      null,
      ...reviewItems(one, model.execution.review, trans)
    ];
    const widget = new Widget();
    widget.addClass('jp-AgentExecCell-more');
    widget.node.append(menuButton(trans.__('More actions'), items, openMenu));
    return widget;
  };
}

/** Names the agent and the cell; it is there while the cell runs. */
export class StopButton extends Widget {
  constructor(
    private readonly _model: IExecutionModel,
    trans: TranslationBundle,
    execute: Execute
  ) {
    super();
    this.addClass('jp-AgentExecCell-stop');
    const { agent, seq, session_id } = _model.execution;
    const text = stopText(agent, seq, trans);
    this.node.append(
      labelledButton(stopIcon, element('bdi', '', text), () => {
        void execute(CommandIDs.interrupt, { session_id });
      })
    );
    _model.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  private _onChanged(): void {
    const runs = isRunning(this._model.execution.status);
    if (!runs && this.node.contains(document.activeElement)) {
      // The keyboard stays at the cell.
      this.node.parentElement?.closest<HTMLElement>('[tabindex]')?.focus();
    }
    this.setHidden(!runs);
  }
}
