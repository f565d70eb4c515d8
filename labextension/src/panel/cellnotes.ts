/** What there is to say of an execution in the panel, in words. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import type {
  Execute,
  IExecution,
  IExecutionModel,
  ISessionModel
} from '../tokens';
import { element, linkButton } from '../widgets/elements';
import { documentText } from '../widgets/notebookwording';
import { commentText } from '../widgets/review';
import {
  afterText,
  executionNotes,
  plainName,
  sizeText
} from '../widgets/wording';

/** How an execution came about or ended, and where its cell is in a notebook. */
export class CellNotes extends Widget {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _execute: Execute,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecNotes');
    _model.changed.connect(this._render, this);
    this._render();
  }

  private _render(): void {
    const { execution } = this._model;
    const { review } = execution;
    const notes = executionNotes(execution, this._trans);
    if (review) {
      notes.push(commentText(review));
    }
    const items = notes.filter(Boolean).map(note => element('div', '', note));
    const place = this._createPlace(execution);
    if (this.node.contains(document.activeElement)) {
      // What had the keyboard may be gone.
      this.node.closest<HTMLElement>('[role="article"]')?.focus();
    }
    this.node.replaceChildren(...items, ...(place ? [place] : []));
    this.setHidden(this.node.childElementCount === 0);
  }

  /** Where the execution's cell is in a notebook, or why there is none. */
  private _createPlace(execution: IExecution): HTMLElement | null {
    const { document: placed, id } = execution;
    const trans = this._trans;
    if (!placed) {
      return null;
    }
    const { cell_id, path, status } = placed;
    if (status === 'discarded') {
      const text = trans.__('Its cell was removed from the notebook.');
      const item = element('div', '', `${text} `);
      item.append(
        linkButton(trans.__('Undo'), () => {
          void this._execute(CommandIDs.undo, { execution_id: id });
        })
      );
      return item;
    }
    const text = documentText(placed, trans);
    if (status === 'not_written') {
      return element('div', '', text);
    }
    const isOpen = status === 'proposed';
    if (!cell_id && !isOpen) {
      return null; // it is being written
    }
    const command = isOpen ? CommandIDs.goToProposal : CommandIDs.goToCell;
    const label = isOpen
      ? trans.__('Go to the notebook')
      : trans.__('Go to the cell');
    const button = linkButton(label, () => {
      void this._execute(command, { path, cell_id, execution_id: id });
    });
    button.title = [plainName(path), text].filter(Boolean).join('\n');
    return button;
  }
}

/** How much of the output is missing, and the way to what the server has. */
export class OmittedNote extends Widget {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _execute: Execute,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecNotes');
    _model.changed.connect(this._render, this);
    this._render();
  }

  private _render(): void {
    const { id, omitted, outputs_complete } = this._model.execution;
    const trans = this._trans;
    const { bytes, lines, outputs, unknown } = omitted;
    const isLost = bytes + outputs > 0;
    const missing =
      unknown || !(isLost || outputs_complete)
        ? trans.__('Some output may be missing.')
        : '';
    this.setHidden(!isLost && missing === '');
    this.node.replaceChildren();
    if (isLost) {
      const parts = [
        trans.__('%1 left out', sizeText(bytes)),
        lines > 0 && trans._n('%1 line', '%1 lines', lines, lines),
        outputs > 0 && trans._n('%1 output', '%1 outputs', outputs, outputs)
      ].filter(Boolean);
      const link = linkButton(trans.__('Open full output'), () => {
        void this._execute(CommandIDs.openText, { execution_id: id });
      });
      this.node.append(`${parts.join(', ')}. `, link, ' ');
    }
    this.node.append(missing);
  }
}

/** What happened in the kernel after an execution and before the next. */
export class LaterNote extends Widget {
  constructor(
    private readonly _session: ISessionModel,
    private readonly _seq: number,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecNotes');
    _session.changed.connect(this._render, this);
    this._render();
  }

  private _render(): void {
    const text = afterText(this._session.eventsAfter(this._seq), this._trans);
    this.node.textContent = text;
    this.setHidden(text === '');
  }
}
