/** In the cell that runs: a button that stops it. */
import { stopIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs, isRunning } from '../tokens';
import type { Execute, IExecutionModel } from '../tokens';
import { stopText } from './atworkwording';
import { element, labelledButton } from './elements';

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
