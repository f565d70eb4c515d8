/** Tells in a notebook which cells are copies of what agents ran. */
import type { Cell } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';
import { ORIGIN_KEY, readOrigin } from '../model/origin';
import type { IOrigin } from '../model/origin';
import { CommandIDs } from '../tokens';
import type { Execute } from '../tokens';
import { element, iconElement, linkButton } from './elements';
import { activityIcon } from './icons';
import { plainName, shortText } from './notebookwording';
import { agentWords, quoted } from './wording';

/** Gives each copy a line above its input; it goes where the cell goes. */
export class Origins implements IDisposable {
  constructor(
    private readonly _notebook: Notebook,
    private readonly _trans: TranslationBundle,
    private readonly _execute: Execute
  ) {
    _notebook.modelChanged.connect(this._onModelChanged, this);
    this._onModelChanged();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _onModelChanged(): void {
    this._notebook.model?.cells.changed.connect(this._look, this);
    this._look();
  }

  private _look(): void {
    for (const cell of this._notebook.widgets) {
      if (!this._cells.has(cell)) {
        this._cells.add(cell);
        const origin = readOrigin(cell.model.getMetadata(ORIGIN_KEY));
        if (origin) {
          void cell.ready.then(() => this._add(cell, origin));
        }
      }
    }
  }

  private _add(cell: Cell, origin: IOrigin): void {
    if (!this._isDisposed && !cell.isDisposed) {
      const note = this._createNote(origin);
      (cell.layout as PanelLayout).insertWidget(0, note);
    }
  }

  private _createNote(origin: IOrigin): Widget {
    const trans = this._trans;
    const { accepted_at, agent, execution_id, held, session_id } = origin;
    const note = new Widget();
    note.addClass('jp-AgentExecOrigin');
    // Keys on its button are for it, not for the notebook.
    note.node.dataset.lmSuppressShortcuts = 'true';
    const text = element('span', '');
    text.textContent = trans.__(
      'Copied from agent %1, %2',
      quoted(shortText(agentWords(agent))),
      new Date(accepted_at).toLocaleString()
    );
    text.title =
      held.length > 0
        ? trans.__('Without %1', plainName(held.join(', ')))
        : trans.__('Session %1', plainName(session_id));
    const button = linkButton(trans.__('Show in Agent Activity'), () => {
      void this._execute(CommandIDs.openPanel, { session_id, execution_id });
    });
    note.node.append(iconElement(activityIcon), text, button);
    return note;
  }

  private readonly _cells = new WeakSet<Cell>();
  private _isDisposed = false;
}
