import type { PartialJSONObject } from '@lumino/coreutils';
import { NotebookModel } from '@jupyterlab/notebook';
import type { Notebook } from '@jupyterlab/notebook';
import { inertHTML, inertOutputs } from '../../model/inert';
import { insertCopies, readWanted } from '../../model/insertion';
import { copiedCell, ORIGIN_KEY, readOrigin } from '../../model/origin';
import { execution, FakeServer, stdout } from '../fakes';

function display(data: PartialJSONObject) {
  return { output_type: 'display_data', data, metadata: {} };
}

describe('inertHTML', () => {
  it('keeps a table and its text', () => {
    const table =
      '<table border="1" class="dataframe"><tbody><tr><td colspan="2">1</td></tr></tbody></table>';
    expect(inertHTML(table)).toBe(table);
  });

  it.each([
    [
      '<p onclick="x()" style="position:fixed" class="a" id="b">t</p>',
      '<p>t</p>'
    ],
    ['<script>x</script><style>x</style><svg><a/></svg>t', 't'],
    ['<form><button>t</button></form>', 't'],
    ['<img src="http://x"><iframe src="http://x"></iframe>t', 't'],
    ['<a href="javascript:x">t</a>', '<a>t</a>'],
    ['<custom-tag><b>t</b></custom-tag>', '<b>t</b>'],
    [
      '<a href="https://x">t</a>',
      '<a href="https://x" rel="noopener noreferrer" target="_blank">t</a>'
    ]
  ])('of %s leaves %s', (html, left) => {
    expect(inertHTML(html)).toBe(left);
  });
});

describe('inertOutputs', () => {
  it('keeps text and images, and names what it is without', () => {
    const error = {
      output_type: 'error',
      ename: 'E',
      evalue: '',
      traceback: []
    };
    const { held, outputs } = inertOutputs([
      stdout('x'),
      error,
      display({ 'image/png': 'AAAA', 'text/plain': ['a', 'b'] }),
      display({ 'text/markdown': '# x' }),
      display({ 'text/html': '<script>x</script>' }),
      display({ 'application/javascript': 'x' }),
      { output_type: 'unknown' }
    ]);
    expect(outputs).toEqual([
      stdout('x'),
      error,
      display({ 'image/png': 'AAAA', 'text/plain': 'ab' }),
      display({ 'text/plain': '# x' })
    ]);
    expect(held).toEqual(['text/html', 'application/javascript']);
  });
});

describe('copiedCell', () => {
  it('tells where it is from, under a key of its own', () => {
    const cell = copiedCell(
      execution({ cell: { outputs: [stdout('x')] } }),
      true
    );
    expect(cell.metadata.agent_exec).toBeUndefined();
    expect(cell.metadata.trusted).toBe(true);
    expect(cell.id).toBeUndefined();
    expect(cell.outputs).toEqual([stdout('x')]);
    expect(readOrigin(cell.metadata[ORIGIN_KEY])).toMatchObject({
      session_id: 's_1',
      execution_id: 'x_1',
      agent: { name: 'analyst' }
    });
  });

  it('is only a source where no outputs are wanted', () => {
    const cell = copiedCell(
      execution({ cell: { outputs: [stdout('x')] } }),
      false
    );
    expect(cell.outputs).toEqual([]);
    expect(cell.metadata.trusted).toBeUndefined();
  });

  it.each([undefined, null, 'x', {}, { session_id: 's', agent: {} }])(
    'is not read of %p',
    metadata => {
      expect(readOrigin(metadata)).toBeNull();
    }
  );
});

describe('readWanted', () => {
  it('reads single ones, all of a session, and all from one on', async () => {
    const server = new FakeServer();
    server.put(
      ...Array.from({ length: 60 }, (_, n) => execution({ seq: n + 1 }))
    );
    const seqs = async (wanted: Parameters<typeof readWanted>[1]) =>
      (await readWanted(server, wanted)).map(({ seq }) => seq);
    expect(await seqs({ ids: ['x_3', 'x_1'] })).toEqual([3, 1]);
    expect(await seqs({ sessionId: 's_1', fromId: null })).toHaveLength(60);
    expect(await seqs({ sessionId: 's_1', fromId: 'x_59' })).toEqual([59, 60]);
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
    insertCopies(notebook as unknown as Notebook, both, true);
    expect(sources()).toEqual(['a', 's1', 's2', 'b']);
    expect(notebook.activeCellIndex).toBe(1);
    expect(notebook.extendContiguousSelectionTo).toHaveBeenCalledWith(2);
    model.sharedModel.undo();
    expect(sources()).toEqual(['a', 'b']);
    insertCopies(notebook as unknown as Notebook, [], true);
    expect(sources()).toEqual(['a', 'b']);
    model.dispose();
  });
});
