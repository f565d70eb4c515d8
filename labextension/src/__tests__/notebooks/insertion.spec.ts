import { NotebookModel } from '@jupyterlab/notebook';
import type { Notebook } from '@jupyterlab/notebook';
import {
  insertCopies,
  insertMissing,
  missingFrom
} from '../../notebooks/insertion';
import { copiedCell, ORIGIN_KEY } from '../../notebooks/origin';
import type { IDocument, IExecution } from '../../tokens';
import { execution, stdout } from '../fakes';

/** A notebook of raw cells; `metadata` are those of a cell by its id. */
function notebookOf(
  ids: readonly string[],
  metadata: Record<string, object> = {}
): NotebookModel {
  const model = new NotebookModel();
  model.fromJSON({
    cells: ids.map(id => ({
      cell_type: 'raw',
      id,
      source: id,
      metadata: { ...metadata[id] }
    })),
    metadata: {},
    nbformat: 4,
    nbformat_minor: 5
  });
  model.sharedModel.clearUndoHistory();
  return model;
}

function sourcesOf({ sharedModel }: NotebookModel): string[] {
  return sharedModel.cells.map(cell => cell.getSource());
}

describe('copiedCell', () => {
  it('tells where it is from, under a key of its own', () => {
    const cell = copiedCell(execution({ cell: { outputs: [stdout('x')] } }));
    expect(cell.metadata.agent_exec).toBeUndefined();
    expect(cell.metadata.trusted).toBe(true);
    expect(cell.id).toBeUndefined();
    expect(cell.outputs).toEqual([stdout('x')]);
    expect(cell.metadata[ORIGIN_KEY]).toMatchObject({
      session_id: 's_1',
      execution_id: 'x_1',
      agent: { name: 'analyst' }
    });
  });

  it('says what the server held back, and is no result of another kernel', () => {
    const data = { 'text/plain': '1' };
    const cell = copiedCell(
      execution({
        cell: {
          outputs: [
            {
              output_type: 'execute_result',
              data,
              metadata: {},
              execution_count: 3
            }
          ],
          metadata: { agent_exec: { held: ['text/html'] } }
        }
      })
    );
    expect(cell.outputs).toEqual([
      { output_type: 'display_data', data, metadata: {} }
    ]);
    expect(cell.metadata[ORIGIN_KEY]).toMatchObject({ held: ['text/html'] });
  });
});

describe('insertCopies', () => {
  it('puts them below the active cell, and undoes them in one step', () => {
    const model = notebookOf(['a', 'b']);
    const notebook = {
      model,
      activeCellIndex: 0,
      mode: 'edit',
      deselectAll: jest.fn(),
      extendContiguousSelectionTo: jest.fn()
    };
    const sources = () => sourcesOf(model);
    const both = [1, 2].map(seq => execution({ seq, source: `s${seq}` }));
    insertCopies(notebook as unknown as Notebook, both);
    expect(sources()).toEqual(['a', 's1', 's2', 'b']);
    expect(notebook.activeCellIndex).toBe(1);
    expect(notebook.extendContiguousSelectionTo).toHaveBeenCalledWith(2);
    model.sharedModel.undo();
    expect(sources()).toEqual(['a', 'b']);
    insertCopies(notebook as unknown as Notebook, []);
    expect(sources()).toEqual(['a', 'b']);
    model.dispose();
  });
});

describe('insertMissing', () => {
  /** An execution that has run, in a cell. */
  const ran = (seq: number, cell_id: string | null, given: object = {}) =>
    execution({
      seq,
      source: `s${seq}`,
      started_at: '2026-01-02T03:04:05.000Z',
      document: { cell_id } as IDocument,
      ...given
    });
  const read = (model: NotebookModel, all: readonly IExecution[]) =>
    missingFrom(model, all).map(({ id }) => all.find(each => each.id === id)!);
  const insert = (model: NotebookModel, all: readonly IExecution[]) =>
    insertMissing(model, all, read(model, all));

  it('puts each below the one that ran before it, in one step', () => {
    const model = notebookOf(['mine', 'b', 'yours', 'e']);
    const all = [
      ran(1, null),
      ran(2, 'b'),
      ran(3, 'gone'),
      ran(4, null),
      ran(5, 'e'),
      ran(6, 'gone too')
    ];
    insert(model, all);
    const after = ['mine', 'b', 's3', 's4', 'yours', 'e', 's1', 's6'];
    expect(sourcesOf(model).sort()).toEqual([...after].sort());
    expect(sourcesOf(model).slice(0, 6)).toEqual(after.slice(0, 6));
    expect(missingFrom(model, all)).toEqual([]);
    model.sharedModel.undo();
    expect(sourcesOf(model)).toEqual(['mine', 'b', 'yours', 'e']);
    model.dispose();
  });

  it('finds their places when they have been read, and what is there by then', () => {
    const model = notebookOf(['mine', 'b', 'yours', 'e']);
    const all = [ran(1, 'b'), ran(2, null), ran(3, 'e'), ran(4, null)];
    const found = read(model, all);
    model.sharedModel.deleteCellRange(2, 4);
    model.sharedModel.insertCell(0, { ...copiedCell(all[3]), source: 'was 4' });
    expect(insertMissing(model, all, found)).toBe(1);
    expect(sourcesOf(model)).toEqual(['was 4', 'mine', 'b', 's2']);
    model.dispose();
  });

  it('misses nothing that is there, did not run, or was replaced', () => {
    const model = notebookOf(['mine', 'copy', 'moved'], {
      copy: { [ORIGIN_KEY]: { execution_id: 'x_1' } },
      moved: {
        agent_exec: {
          agent: { name: 'analyst' },
          execution_id: 'x_2',
          session_id: 's_1',
          status: 'ok'
        }
      }
    });
    const all = [
      ran(1, 'elsewhere'),
      ran(2, null),
      ran(3, null, { started_at: null, status: 'rejected' }),
      ran(4, null, { status: 'running' }),
      ran(5, null, { trial: true }),
      ran(6, 'edited twice'),
      ran(7, 'edited twice')
    ];
    insert(model, all);
    expect(sourcesOf(model)).toEqual(['mine', 'copy', 'moved', 's7']);
    model.dispose();
  });
});
