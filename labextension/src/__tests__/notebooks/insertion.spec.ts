import { NotebookModel } from '@jupyterlab/notebook';
import type { Notebook } from '@jupyterlab/notebook';
import { insertCopies } from '../../notebooks/insertion';
import { copiedCell, ORIGIN_KEY } from '../../notebooks/origin';
import { execution, stdout } from '../fakes';

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
    const model = new NotebookModel();
    model.fromJSON({
      cells: ['a', 'b'].map(id => ({
        cell_type: 'raw',
        id,
        source: id,
        metadata: {}
      })),
      metadata: {},
      nbformat: 4,
      nbformat_minor: 5
    });
    model.sharedModel.clearUndoHistory();
    const notebook = {
      model,
      activeCellIndex: 0,
      mode: 'edit',
      deselectAll: jest.fn(),
      extendContiguousSelectionTo: jest.fn()
    };
    const sources = () => model.sharedModel.cells.map(cell => cell.getSource());
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
