/** Which executions of agents have a cell in a notebook, and in its file. */
import type { INotebookModel } from '@jupyterlab/notebook';
import type { Change, IFileCells } from '../api/changes';
import { METADATA_KEY } from '../api/cellrecord';

/** Tells cells that a person deletes from cells that a page never had. */
export class AgentsCells {
  constructor(private readonly _model: INotebookModel) {
    this._held = this._list();
    this._file = { number: 1, event: 'read', executions: [...this._held] };
  }

  /** What the file had when it was last read or saved. */
  get file(): IFileCells {
    return this._file;
  }

  /** Whose cells were deleted since then. */
  get deleted(): string[] {
    return this._deleted;
  }

  /** The cells that the server changed or added, and that were deleted since then. */
  get deletedCells(): string[] {
    return this._deletedCells;
  }

  /** The file was read or saved. */
  note(event: IFileCells['event']): void {
    this._held = this._list();
    this._deleted = [];
    this._deletedCells = [];
    this._changed.clear();
    const executions = [...this._held];
    this._file = { number: this._file.number + 1, event, executions };
  }

  /** The server has changed cells. */
  take(changes: readonly Change[]): void {
    for (const change of changes) {
      const id =
        change.op === 'set_cell' && change.agent_exec?.['execution_id'];
      if (typeof id === 'string') {
        this._held.add(id);
      }
      if (change.op === 'put') {
        this._changed.add(change.cell.id);
      } else if (change.op === 'delete') {
        this._changed.delete(change.cell_id);
      } else {
        this._changed.add(change.cell_id);
      }
    }
  }

  /** Cells were removed, or are there again; a file that is read replaces all. */
  compare(): void {
    if (this._model.dirty) {
      const ids = new Set(Array.from(this._model.cells, ({ id }) => id));
      this._deletedCells = [...this._changed].filter(id => !ids.has(id));
      const present = this._list();
      this._deleted = [...this._held].filter(id => !present.has(id));
    } else {
      this.note('read');
    }
  }

  private _list(): Set<string> {
    const found = new Set<string>();
    for (const cell of this._model.cells) {
      const told = cell.getMetadata(METADATA_KEY) as unknown;
      const id = (told as { execution_id?: unknown } | undefined)?.execution_id;
      if (typeof id === 'string') {
        found.add(id);
      }
    }
    return found;
  }

  /** The cells that the server changed or added since the file was read or saved. */
  private readonly _changed = new Set<string>();
  private _deleted: string[] = [];
  private _deletedCells: string[] = [];
  private _file: IFileCells;
  /** All that had a cell here since the file was read or saved. */
  private _held: Set<string>;
}
