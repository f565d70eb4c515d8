/** The notebook of a session, kept in step with what its agent does. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import { JSONExt } from '@lumino/coreutils';
import type { PartialJSONObject } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { METADATA_KEY } from '../api/cellrecord';
import { Coalescer } from '../live/coalescer';
import { CellOutputs } from '../live/celloutputs';
import type { IExecutionModel, ISessionModel } from '../tokens';
import { cellOf, EMPTY, outputsOf, recordOf } from './cells';

/** Milliseconds between two drawings of outputs that grow. */
const DRAW_INTERVAL_MS = 100;

/**
 * Adds a cell for each execution to a notebook, and changes the cells of those
 * that change. Nothing of it is ever to be saved.
 */
export class SessionDocument implements IDisposable {
  /**
   * @param _model - Of the notebook, as the drive has read it.
   * @param _session - What it shows.
   */
  constructor(
    private readonly _model: INotebookModel,
    private readonly _session: ISessionModel
  ) {
    this._drawing = new Coalescer(async () => this._draw(), DRAW_INTERVAL_MS);
    _model.readOnly = true;
    _model.stateChanged.connect(this._onState, this);
    this._onState();
    _session.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  get isDisposed(): boolean {
    return this._drawing.isDisposed;
  }

  dispose(): void {
    this._drawing.dispose();
    Signal.clearData(this);
  }

  private _onState(): void {
    // It is told of while the change is being made.
    void Promise.resolve().then(() => {
      if (!this.isDisposed && this._model.dirty) {
        this._model.dirty = false;
      }
    });
  }

  /** Have a cell for each execution: they come in order. */
  private _onChanged(): void {
    const added = this._session.executions.filter(
      each => !this._shown.has(each)
    );
    if (added.length === 0) {
      return;
    }
    const known = new Set(Array.from(this._model.cells, ({ id }) => id));
    const missing = added.filter(({ execution: { id } }) => !known.has(id));
    const { sharedModel } = this._model;
    sharedModel.transact(() => {
      sharedModel.insertCells(sharedModel.cells.length, missing.map(cellOf));
      if (sharedModel.cells[0].getId() === EMPTY) {
        sharedModel.deleteCell(0);
      }
    }, false);
    for (const each of added) {
      this._shown.set(each, outputsOf(each));
      each.changed.connect(this._onExecutionChanged, this);
      this._cellOf(each)?.stateChanged.connect(this._onCellState, this);
    }
  }

  private _cellOf({
    execution: { id, seq }
  }: IExecutionModel): ICodeCellModel | null {
    const { cells } = this._model;
    const cell =
      cells.get(seq - 1)?.id === id
        ? cells.get(seq - 1)
        : Array.from(cells).find(each => each.id === id);
    return cell?.type === 'code' ? (cell as ICodeCellModel) : null;
  }

  private _onExecutionChanged(
    model: IExecutionModel,
    what: 'status' | 'outputs'
  ): void {
    this._changed.add(model);
    if (what === 'status') {
      this._showStatus(model);
    }
    void this._drawing.request();
  }

  private _showStatus(model: IExecutionModel): void {
    const { execution } = model;
    const cell = this._cellOf(model);
    if (!cell) {
      return;
    }
    const record = recordOf(execution) as PartialJSONObject;
    const shown = cell.getMetadata(METADATA_KEY) as PartialJSONObject;
    if (!JSONExt.deepEqual(shown, record)) {
      cell.setMetadata(METADATA_KEY, record);
    }
    cell.executionCount = execution.execution_count;
    if (cell.sharedModel.getSource() !== execution.source) {
      cell.sharedModel.setSource(execution.source);
    }
  }

  /** Bring outputs in line with what is known. */
  private _draw(): void {
    const changed = Array.from(this._changed);
    this._changed.clear();
    for (const model of changed) {
      const cell = this._cellOf(model);
      const before = this._shown.get(model) ?? [];
      const outputs = outputsOf(model);
      this._shown.set(model, outputs);
      if (cell) {
        CellOutputs.of(cell).follow(before, outputs);
      }
    }
  }

  /** Show again what JupyterLab has cleared, as it does where no kernel is. */
  private _onCellState(
    cell: { id: string },
    { name, newValue }: { name: string; newValue: unknown }
  ): void {
    const model = this._session.find(cell.id);
    if (
      name !== 'executionCount' ||
      !model ||
      newValue === model.execution.execution_count
    ) {
      return;
    }
    void Promise.resolve().then(() => {
      const cleared = this.isDisposed ? null : this._cellOf(model);
      if (cleared) {
        cleared.trusted = false;
        cleared.outputs.fromJSON([...outputsOf(model)]);
        cleared.executionCount = model.execution.execution_count;
      }
    });
  }

  private readonly _changed = new Set<IExecutionModel>();
  private readonly _drawing: Coalescer;
  /** The executions that have cells, and their outputs as they are shown. */
  private readonly _shown = new Map<
    IExecutionModel,
    readonly nbformat.IOutput[]
  >();
}
