/**
 * Makes an agent's changes in the model of an open notebook.
 *
 * All is done at once, synchronously, so that nothing a person types comes
 * between, and nothing of it is undoable, so that a person's undo takes back
 * their own edits only.
 */
import type { YCodeCell } from '@jupyter/ydoc';
import type { ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { PartialJSONValue } from '@lumino/coreutils';
import { METADATA_KEY } from '../api/cellrecord';
import { applyOutputChange } from '../api/outputs';
import type {
  Change,
  IExpected,
  INotebook,
  IPosition,
  ISetCell
} from '../api/changes';
import type { IOutputChange } from '../wire';
import { CellOutputs } from '../live/celloutputs';
import { PersonsRuns } from './personsruns';

/** What was expected of a notebook does not hold; nothing was done. */
export class ExpectationFailed extends Error {}

/** A cell that is put in, and what it is put in with. */
interface INewCell extends Extract<Change, { op: 'put' }> {
  state?: ISetCell;
  outputs?: readonly nbformat.IOutput[];
}

/** A change, or what is left of it where the outputs are a person's. */
type Step =
  | Exclude<Change, { op: 'put' }>
  | INewCell
  | (Pick<ISetCell, 'cell_id' | 'agent_exec'> & { op: 'set_record' });

/** The minor version of nbformat 4 since which files hold cells' ids. */
const CELL_IDS_SINCE = 5;

/** A notebook's cells, by ids that are read only once: there may be many. */
class Cells {
  constructor(private readonly _model: INotebookModel) {
    this.ids = _model.sharedModel.cells.map(cell => cell.getId());
  }

  /** In order, and kept up to date. */
  readonly ids: string[];

  /** The index of a cell. */
  indexOf(id: string): number {
    const index = this.ids.indexOf(id);
    if (index < 0) {
      throw new ExpectationFailed(`Cell ${id} is gone.`);
    }
    return index;
  }

  find(id: string): ICellModel {
    return this._model.cells.get(this.indexOf(id));
  }

  /** A cell of which the file will hold the id, if need be in its metadata. */
  hold(id: string): ICellModel {
    const cell = this.find(id);
    const ours = cell.getMetadata(METADATA_KEY);
    if (
      this._model.sharedModel.nbformat_minor < CELL_IDS_SINCE &&
      ours?.cell_id !== id
    ) {
      cell.setMetadata(METADATA_KEY, { ...ours, cell_id: id });
    }
    return cell;
  }

  insert(index: number, cell: nbformat.ICell & { id: string }): ICellModel {
    this.ids.splice(index, 0, cell.id);
    this._change(shared => shared.insertCell(index, cell));
    return this._model.cells.get(index);
  }

  move(from: number, to: number): void {
    this.ids.splice(to, 0, ...this.ids.splice(from, 1));
    this._change(shared => shared.moveCell(from, to));
  }

  delete(index: number): void {
    this.ids.splice(index, 1);
    this._change(shared => shared.deleteCell(index));
  }

  private _change(
    change: (shared: INotebookModel['sharedModel']) => void
  ): void {
    const { sharedModel } = this._model;
    sharedModel.transact(() => change(sharedModel), false);
  }
}

/** The notebook as its file would be if it were saved now, with all ids. */
export function readNotebook(model: INotebookModel): INotebook {
  const { cells, nbformat_minor } = model.sharedModel.toJSON();
  cells.forEach((cell, index) => {
    cell.id = model.sharedModel.cells[index].getId();
    delete cell.metadata.trusted;
  });
  return { cells: cells as nbformat.ICell[], nbformat_minor };
}

/** Give cells other ids, by the ids that they have. That is no edit. */
export function nameCells(
  model: INotebookModel,
  names: { [id: string]: string }
): void {
  for (const cell of model.sharedModel.cells) {
    const { ymodel } = cell as YCodeCell;
    const name = names[cell.getId()];
    if (name) {
      // JupyterLab tells nobody of a change of this origin.
      ymodel.doc?.transact(() => ymodel.set('id', name), 'silent-change');
    }
  }
}

/**
 * Make changes, all or none.
 *
 * @param runs What a person ran since an execution came to its cell; of the
 * execution only the metadata are set there, and the rest is the person's.
 * @throws ExpectationFailed if what is expected does not hold, or a change is for
 * something that is not there.
 */
export function applyChanges(
  model: INotebookModel,
  changes: readonly Change[],
  expected: IExpected,
  runs = new PersonsRuns()
): void {
  const cells = new Cells(model);
  checkExpected(cells, expected);
  const steps = leaveOutputs(cells, changes, runs);
  checkChanges(cells, steps);
  for (const step of fillNew(cells, steps)) {
    applyOne(cells, step);
  }
}

function leaveOutputs(
  cells: Cells,
  changes: readonly Change[],
  runs: PersonsRuns
): Step[] {
  /** Metadata so far, of cells in which they change. */
  const metadata = new Map<string, ISetCell['agent_exec']>();
  return changes.map(change => {
    if (change.op === 'set_cell') {
      const { cell_id, agent_exec } = change;
      metadata.set(cell_id, agent_exec);
      return runs.own(cell_id, agent_exec)
        ? { op: 'set_record', cell_id, agent_exec }
        : change;
    }
    if (change.op === 'set_outputs') {
      const { cell_id: id } = change;
      const agentExec = metadata.has(id)
        ? metadata.get(id)
        : executionShownIn(cells, id);
      return runs.own(id, agentExec) ? { ...change, changes: [] } : change;
    }
    return change;
  });
}

function executionShownIn(
  cells: Cells,
  id: string
): PartialJSONValue | undefined {
  return cells.ids.includes(id)
    ? cells.find(id).getMetadata('agent_exec')
    : undefined;
}

function checkExpected(cells: Cells, expected: IExpected): void {
  const { counts, order } = expected;
  if (order) {
    const { ids } = cells;
    if (ids.length !== order.length || ids.some((id, i) => id !== order[i])) {
      throw new ExpectationFailed('Cells were added, removed or moved.');
    }
  }
  for (const [id, [cellType, source]] of Object.entries(expected.cells)) {
    const { sharedModel, type } = cells.find(id);
    if (type !== cellType || sharedModel.getSource() !== source) {
      throw new ExpectationFailed(`Cell ${id} has changed.`);
    }
  }
  for (const [id, count] of Object.entries(counts ?? {})) {
    const cell = cells.find(id);
    if (isCode(cell) && cell.executionCount !== count) {
      throw new ExpectationFailed(`Cell ${id} was run.`);
    }
  }
}

/** Go through changes without making them, to find what would not go. */
function checkChanges(cells: Cells, changes: readonly Step[]): void {
  const ids = new Set(cells.ids);
  /** Outputs so far, of cells whose outputs change; null if not a code cell. */
  const outputs = new Map<string, readonly nbformat.IOutput[] | null>();
  for (const change of changes) {
    if (change.op === 'put') {
      if (!ids.has(change.cell.id)) {
        ids.add(change.cell.id);
        outputs.set(
          change.cell.id,
          change.cell.cell_type === 'code' ? [] : null
        );
      }
    } else if (change.op === 'delete') {
      ids.delete(change.cell_id);
    } else if (!(change.op === 'move' && standsBeside(change))) {
      const id = change.cell_id;
      if (!ids.has(id)) {
        throw new ExpectationFailed(`Cell ${id} is gone.`);
      }
      if (change.op === 'set_outputs') {
        const known = outputs.get(id);
        const before = known === undefined ? outputsOf(cells, id) : known;
        outputs.set(id, changedOutputs(id, before, change.changes));
      }
    }
  }
}

function outputsOf(
  cells: Cells,
  id: string
): readonly nbformat.IOutput[] | null {
  const cell = cells.find(id);
  return isCode(cell) ? CellOutputs.of(cell).list : null;
}

function changedOutputs(
  id: string,
  before: readonly nbformat.IOutput[] | null,
  changes: readonly IOutputChange[]
): readonly nbformat.IOutput[] {
  let after = before;
  for (const change of changes) {
    after = after && applyOutputChange(after, change);
  }
  if (!after) {
    throw new ExpectationFailed(
      `Cell ${id} has not the outputs that are to be changed.`
    );
  }
  return after;
}

/**
 * Have new code cells put in as the changes after that leave them.
 *
 * At each change of a cell, JupyterLab goes through all cells of the notebook.
 */
function fillNew(cells: Cells, steps: readonly Step[]): Step[] {
  const ids = new Set(cells.ids);
  const filled: Step[] = [];
  for (const step of steps) {
    const put = filled.length > 0 ? filled[filled.length - 1] : null;
    const whole =
      put?.op === 'put' &&
      put.cell.cell_type === 'code' &&
      !ids.has(put.cell.id)
        ? fill(put, step)
        : null;
    if (whole) {
      filled[filled.length - 1] = whole;
    } else {
      filled.push(step);
    }
  }
  return filled;
}

/** A cell that is put in with what a change sets; null if that cannot be. */
function fill(put: INewCell, step: Step): INewCell | null {
  if (step.op === 'set_cell' && step.cell_id === put.cell.id && !put.state) {
    return { ...put, state: step };
  }
  if (step.op === 'set_outputs' && step.cell_id === put.cell.id && put.state) {
    const { changes } = step;
    const outputs = changedOutputs(put.cell.id, put.outputs ?? [], changes);
    // Before 4.6, JupyterLab does not save what a stream gets that was put in.
    return outputs.some(isStream) ? null : { ...put, outputs };
  }
  return null;
}

function isStream({ output_type }: nbformat.IOutput): boolean {
  return output_type === 'stream';
}

function applyOne(cells: Cells, change: Step): void {
  switch (change.op) {
    case 'put':
      return putCell(cells, change);
    case 'move':
      return moveCell(cells, change);
    case 'delete':
      return deleteCell(cells, change.cell_id);
    case 'set_source':
      return setSource(cells.hold(change.cell_id), change.source);
    case 'set_cell':
      setCell(cells.find(change.cell_id), change);
      cells.hold(change.cell_id);
      return;
    case 'set_record':
      setRecord(cells.find(change.cell_id), change.agent_exec);
      cells.hold(change.cell_id);
      return;
    case 'set_outputs': {
      const cell = cells.find(change.cell_id);
      if (isCode(cell)) {
        CellOutputs.of(cell).change(change.changes);
      }
    }
  }
}

function putCell(cells: Cells, { at, cell, outputs, state }: INewCell): void {
  if (cells.ids.includes(cell.id)) {
    return; // it was put before
  }
  // Nothing is trusted because somebody who sends it says so.
  const metadata = { ...cell.metadata };
  delete metadata.trusted;
  if (state?.trusted) {
    metadata.trusted = true;
  }
  if (state?.agent_exec) {
    metadata.agent_exec = state.agent_exec;
  }
  const put = cells.insert(place(cells.ids, at), {
    ...cell,
    metadata,
    ...(state && { execution_count: state.execution_count }),
    ...(outputs && { outputs: [...outputs] })
  });
  cells.hold(cell.id);
  if (state && isCode(put) && put.executionState !== state.execution_state) {
    put.executionState = state.execution_state;
  }
}

type Move = Extract<Change, { op: 'move' }>;

/** Whether a cell is to stand beside itself, where it stands. */
function standsBeside({ cell_id: id, at }: Move): boolean {
  return id === at.after || id === at.before;
}

function moveCell(cells: Cells, change: Move): void {
  if (standsBeside(change)) {
    return;
  }
  const from = cells.indexOf(change.cell_id);
  const to = place(
    cells.ids.filter(id => id !== change.cell_id),
    change.at
  );
  if (to === from) {
    return;
  }
  const moved = cells.find(change.cell_id);
  const state = isCode(moved) ? moved.executionState : null;
  cells.move(from, to);
  // The cell is made anew where it goes, without what is not in a file.
  const cell = cells.hold(change.cell_id);
  if (isCode(cell) && state) {
    cell.executionState = state;
  }
}

function deleteCell(cells: Cells, id: string): void {
  if (cells.ids.includes(id)) {
    cells.delete(cells.indexOf(id));
  }
}

/** Change only what differs, so that a cursor beside it stays. */
function setSource(cell: ICellModel, source: string): void {
  const { sharedModel } = cell;
  const old = sharedModel.getSource();
  const shorter = Math.min(old.length, source.length);
  let start = 0;
  while (start < shorter && old[start] === source[start]) {
    start++;
  }
  let same = 0;
  while (
    same < shorter - start &&
    old[old.length - 1 - same] === source[source.length - 1 - same]
  ) {
    same++;
  }
  if (old.length !== source.length || start !== old.length) {
    const text = source.slice(start, source.length - same);
    sharedModel.transact(
      () => sharedModel.updateSource(start, old.length - same, text),
      false
    );
  }
}

function setCell(cell: ICellModel, change: ISetCell): void {
  // Before outputs come: they are shown as they are trusted when they come.
  if (cell.trusted !== change.trusted) {
    cell.trusted = change.trusted;
    if (isCode(cell)) {
      CellOutputs.of(cell).showAgain();
    }
  }
  if (!change.trusted) {
    cell.deleteMetadata('trusted');
  }
  setRecord(cell, change.agent_exec);
  if (isCode(cell)) {
    cell.executionState = change.execution_state;
    cell.executionCount = change.execution_count;
  }
}

function setRecord(cell: ICellModel, record: ISetCell['agent_exec']): void {
  if (record) {
    cell.setMetadata('agent_exec', record);
  } else {
    cell.deleteMetadata('agent_exec');
  }
}

function isCode(cell: ICellModel): cell is ICodeCellModel {
  return cell.type === 'code';
}

/** The index at which a cell goes in. */
function place(ids: readonly string[], at: IPosition): number {
  const { after, before, follows = [] } = at;
  const followed = follows.find(id => ids.includes(id));
  if (followed) {
    return ids.indexOf(followed) + 1;
  }
  const index = ids.findIndex(id => id === after || id === before);
  if (index < 0) {
    return ids.length;
  }
  return ids[index] === after ? index + 1 : index;
}
