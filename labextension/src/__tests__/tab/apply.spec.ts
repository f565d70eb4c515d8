import type { ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import { NotebookModel } from '@jupyterlab/notebook';
import type { Change, IExpected, ISetCell } from '../../api/changes';
import {
  applyChanges,
  ExpectationFailed,
  nameCells,
  readNotebook
} from '../../tab/apply';
import { PersonsRuns } from '../../tab/personsruns';
import type { IOutputChange } from '../../tokens';
import { stdout } from '../fakes';

const ANY: IExpected = { cells: {}, order: null };
const END = { after: null, before: null };

function code(id: string, source = '', outputs: nbformat.IOutput[] = []) {
  return {
    cell_type: 'code',
    id,
    source,
    metadata: {},
    outputs,
    execution_count: null
  };
}

function picture(data = 'AAAA') {
  return {
    output_type: 'display_data',
    data: { 'image/png': data },
    metadata: {}
  };
}

function notebook(...cells: nbformat.ICell[]): NotebookModel {
  return opened(5, cells);
}

function opened(minor: number, cells: nbformat.ICell[]): NotebookModel {
  const model = new NotebookModel();
  model.fromJSON({ cells, metadata: {}, nbformat: 4, nbformat_minor: minor });
  model.sharedModel.clearUndoHistory();
  return model;
}

function ids(model: NotebookModel): string[] {
  return Array.from(model.cells, cell => cell.id);
}

function cell(model: NotebookModel, id: string): ICodeCellModel {
  return Array.from(model.cells).find(each => each.id === id) as ICodeCellModel;
}

/** The outputs as shown and as saved, which must be the same. */
function outputs(model: NotebookModel, id: string): nbformat.IOutput[] {
  const { outputs: shown, sharedModel } = cell(model, id);
  expect(sharedModel.toJSON().outputs).toEqual(shown.toJSON());
  return shown.toJSON();
}

function apply(model: NotebookModel, ...changes: Change[]): void {
  applyChanges(model, changes, ANY);
}

function setOutputs(id: string, ...changes: IOutputChange[]): Change {
  return { op: 'set_outputs', cell_id: id, changes };
}

function setCell(id: string, given: Partial<ISetCell> = {}): ISetCell {
  return {
    op: 'set_cell',
    cell_id: id,
    agent_exec: { execution_id: 'x' },
    execution_count: 3,
    execution_state: 'running',
    trusted: true,
    ...given
  };
}

beforeAll(() => {
  // Shared cells are read before they are part of a document; JupyterLab
  // does that with each cell, and Yjs warns each time.
  jest.spyOn(console, 'warn').mockImplementation();
});

describe('cells whose ids are not in the file', () => {
  function withoutIds(): NotebookModel {
    const cells = [code('', '1'), code('', '2')];
    cells.forEach(cell => delete (cell as Partial<typeof cell>).id);
    const model = opened(4, cells);
    model.dirty = false; // as after a notebook was read from its file
    const [first, second] = readNotebook(model).cells.map(({ id }) => id);
    nameCells(model, { [String(first)]: 'first', [String(second)]: 'second' });
    return model;
  }

  it('are read with the ids by which they are known here', () => {
    const model = withoutIds();
    expect(ids(model)).toEqual(['first', 'second']);
    expect(readNotebook(model).cells.map(({ id }) => id)).toEqual(ids(model));
  });

  it('get their names without an edit', () => {
    const model = withoutIds();
    expect(model.dirty).toBe(false);
    expect(model.sharedModel.canUndo()).toBe(false);
    expect(model.sharedModel.toJSON().cells.map(({ id }) => id)).toEqual([
      undefined,
      undefined
    ]);
  });

  it.each([
    ['source', { op: 'set_source', cell_id: 'first', source: '3' }],
    ['metadata', setCell('first', { agent_exec: null })],
    ['place', { op: 'move', cell_id: 'first', at: END }]
  ] as [string, Change][])('keep them when their %s changes', (_, change) => {
    const model = withoutIds();
    apply(model, change);
    const { metadata } = cell(model, 'first').toJSON();
    expect(metadata.agent_exec).toEqual({ cell_id: 'first' });
    expect(cell(model, 'second').getMetadata('agent_exec')).toBeUndefined();
  });

  it('keep the ids with which they are put', () => {
    const model = withoutIds();
    apply(model, { op: 'put', cell: code('n'), at: END }, setCell('n'));
    const { metadata } = cell(model, 'n').toJSON();
    expect(metadata.agent_exec).toEqual({ execution_id: 'x', cell_id: 'n' });
  });
});

describe('where cells go', () => {
  it.each([
    ['after a cell', { after: 'a', before: null }, ['a', 'n', 'b']],
    ['before a cell', { after: null, before: 'a' }, ['n', 'a', 'b']],
    ['at the end', END, ['a', 'b', 'n']],
    ['at the end if it is gone', { after: 'z', before: null }, ['a', 'b', 'n']],
    [
      'after another that it follows',
      { after: 'a', before: null, follows: ['z', 'b'] },
      ['a', 'b', 'n']
    ]
  ])('puts one %s', (_, at, expected) => {
    const model = notebook(code('a'), code('b'));
    apply(model, { op: 'put', cell: code('n', '1 + 1'), at });
    expect(ids(model)).toEqual(expected);
    expect(cell(model, 'n').sharedModel.getSource()).toBe('1 + 1');
    expect(model.dirty).toBe(true);
  });

  it('does not put a cell twice', () => {
    const model = notebook(code('a'));
    const put: Change = { op: 'put', cell: code('n', 'new'), at: END };
    apply(model, put, put);
    model.cells.get(1).sharedModel.setSource('edited');
    apply(model, put);
    expect(ids(model)).toEqual(['a', 'n']);
    expect(cell(model, 'n').sharedModel.getSource()).toBe('edited');
  });

  it('puts no cell that says of itself that it is trusted', () => {
    const model = notebook(code('a'));
    const put = { ...code('n'), metadata: { trusted: true, tags: ['t'] } };
    apply(model, { op: 'put', cell: put, at: END });
    expect(cell(model, 'n').trusted).toBe(false);
    expect(cell(model, 'n').metadata).toEqual({ tags: ['t'] });
  });

  it.each([
    ['a', { after: 'c', before: null }, ['b', 'c', 'a']],
    ['a', { after: null, before: 'c' }, ['b', 'a', 'c']],
    ['c', { after: null, before: 'a' }, ['c', 'a', 'b']],
    ['c', { after: 'a', before: null }, ['a', 'c', 'b']],
    ['b', END, ['a', 'c', 'b']],
    ['c', END, ['a', 'b', 'c']],
    ['b', { after: 'b', before: null }, ['a', 'b', 'c']]
  ])('moves %s to %j', (id, at, expected) => {
    const model = notebook(code('a'), code('b'), code('c'));
    apply(model, { op: 'move', cell_id: id, at });
    expect(ids(model)).toEqual(expected);
  });

  it('does not make anew what stands where it should', () => {
    const model = notebook(code('a'), code('b'));
    const before = cell(model, 'b');
    apply(model, { op: 'move', cell_id: 'b', at: END });
    expect(cell(model, 'b')).toBe(before);
  });

  it('does not look for a cell that is to stand beside itself', () => {
    const model = notebook(code('a'));
    const at = { after: 'z', before: null };
    apply(model, { op: 'move', cell_id: 'z', at });
    expect(ids(model)).toEqual(['a']);
  });

  it('keeps of a moved cell what it had', () => {
    const model = notebook(code('a', 'x', [stdout('1')]), code('b'));
    apply(
      model,
      setCell('a', { trusted: true }),
      { op: 'move', cell_id: 'a', at: END },
      setOutputs('a', { index: 0, append: '2' })
    );
    expect(ids(model)).toEqual(['b', 'a']);
    expect(outputs(model, 'a')).toEqual([stdout('12')]);
    expect(cell(model, 'a').executionState).toBe('running');
    expect(cell(model, 'a').executionCount).toBe(3);
    expect(cell(model, 'a').trusted).toBe(true);
  });

  it('moves text', () => {
    const text = { cell_type: 'markdown', id: 'm', source: '#', metadata: {} };
    const model = notebook(text, code('a'));
    apply(model, { op: 'move', cell_id: 'm', at: END });
    expect(ids(model)).toEqual(['a', 'm']);
  });

  it('deletes cells, and does not mind one that is gone', () => {
    const model = notebook(code('a'), code('b'));
    const change: Change = { op: 'delete', cell_id: 'a' };
    apply(model, change, change);
    expect(ids(model)).toEqual(['b']);
  });

  it('replaces one cell by several', () => {
    const model = notebook(code('a'), code('b'));
    apply(
      model,
      { op: 'put', cell: code('n'), at: { after: 'a', before: null } },
      { op: 'put', cell: code('o'), at: { after: 'n', before: null } },
      { op: 'delete', cell_id: 'a' }
    );
    expect(ids(model)).toEqual(['n', 'o', 'b']);
  });
});

describe('a new cell with what is set in it', () => {
  const result = {
    output_type: 'execute_result',
    data: { 'text/plain': '2' },
    metadata: {},
    execution_count: 3
  };
  const changes = (list: nbformat.IOutput[], state: Partial<ISetCell>) => [
    { op: 'put' as const, cell: code('n', '1 + 1'), at: END },
    setCell('n', state),
    setOutputs(
      'n',
      { index: 0, truncate: true },
      ...list.map((output, index) => ({ index, output }))
    )
  ];

  it.each([
    ['a result', [result], {}],
    ['nothing', [], { execution_state: 'idle' as const }],
    ['a stream', [stdout('a\rb'), stdout('c')], {}],
    ['both', [stdout('1'), result], {}],
    ['no trust', [result], { trusted: false, agent_exec: null }]
  ])('is as it is when each is set by itself: %s', (_, list, state) => {
    const [whole, steps] = [notebook(code('a')), notebook(code('a'))];
    apply(whole, ...changes(list, state));
    changes(list, state).forEach(change => apply(steps, change));
    expect(whole.toJSON()).toEqual(steps.toJSON());
    const [put, set] = [cell(whole, 'n'), cell(steps, 'n')];
    expect(put.trusted).toBe(set.trusted);
    expect(put.executionState).toBe(set.executionState);
    expect(outputs(whole, 'n')).toEqual(outputs(steps, 'n'));
    expect(put.outputs.trusted).toBe(set.outputs.trusted);
  });

  it('goes on from there', () => {
    const model = notebook(code('a'));
    apply(model, ...changes([result], {}));
    apply(model, setOutputs('n', { index: 1, output: stdout('1') }));
    apply(model, setOutputs('n', { index: 1, append: '2' }));
    expect(outputs(model, 'n')).toEqual([result, stdout('12')]);
  });

  // At each one, JupyterLab goes through all cells of the notebook.
  it('is one change of the notebook', () => {
    const model = notebook(code('a'));
    let count = 0;
    model.contentChanged.connect(() => count++);
    apply(model, ...changes([result], { execution_state: 'idle' }));
    expect(count).toBe(1);
  });

  it('has the ids of the other cells read once', () => {
    const model = notebook(code('a'), code('b'));
    const read = jest.spyOn(model.sharedModel.cells[0], 'getId');
    apply(model, ...changes([stdout('1')], {}), {
      op: 'delete',
      cell_id: 'b'
    });
    expect(ids(model)).toEqual(['a', 'n']);
    read.mockClear();
    apply(model, setCell('n'), setOutputs('n', { index: 0, append: '2' }));
    expect(read).toHaveBeenCalledTimes(1);
  });

  it('is left alone if it is there already', () => {
    const model = notebook(code('n', 'edited', [stdout('1')]));
    apply(model, ...changes([result], {}));
    expect(cell(model, 'n').sharedModel.getSource()).toBe('edited');
    expect(outputs(model, 'n')).toEqual([result]);
  });
});

describe('a source', () => {
  it.each([
    ['', 'new'],
    ['old', ''],
    ['same', 'same'],
    ['one two three', 'one 2 three'],
    ['aa', 'aaa'],
    ['aaa', 'aa'],
    ['abcabc', 'abc'],
    ['x = 1', 'y = 2']
  ])('becomes what it should: %j to %j', (from, to) => {
    const model = notebook(code('a', from));
    apply(model, { op: 'set_source', cell_id: 'a', source: to });
    expect(cell(model, 'a').sharedModel.getSource()).toBe(to);
  });

  it('is changed only where it differs', () => {
    const model = notebook(code('a', 'one two three'));
    const deltas: unknown[] = [];
    cell(model, 'a').sharedModel.changed.connect((_, change) => {
      deltas.push(change.sourceChange);
    });
    apply(model, { op: 'set_source', cell_id: 'a', source: 'one 2 three' });
    expect(deltas).toEqual([[{ retain: 4 }, { insert: '2' }, { delete: 3 }]]);
  });
});

describe('how a cell stands', () => {
  it('is shown and kept', () => {
    const model = notebook(code('a'));
    apply(model, setCell('a'));
    const a = cell(model, 'a');
    expect(a.executionCount).toBe(3);
    expect(a.executionState).toBe('running');
    expect(a.trusted).toBe(true);
    expect(a.metadata).toEqual({
      agent_exec: { execution_id: 'x' },
      trusted: true
    });
    apply(
      model,
      setCell('a', {
        agent_exec: null,
        execution_count: null,
        execution_state: 'idle',
        trusted: false
      })
    );
    expect(a.executionCount).toBeNull();
    expect(a.executionState).toBe('idle');
    expect(a.trusted).toBe(false);
    expect(a.metadata).toEqual({});
  });

  it('keeps the metadata of others', () => {
    const model = notebook({ ...code('a'), metadata: { tags: ['mine'] } });
    apply(model, setCell('a', { trusted: false }));
    expect(cell(model, 'a').metadata.tags).toEqual(['mine']);
  });

  it('is said of text too', () => {
    const text = { cell_type: 'markdown', id: 'm', source: '#', metadata: {} };
    const model = notebook(text);
    apply(model, setCell('m'));
    expect(cell(model, 'm').getMetadata('agent_exec')).toEqual({
      execution_id: 'x'
    });
  });

  it('shows outputs again when they become trusted, and goes on', () => {
    const model = notebook(code('a'));
    apply(
      model,
      setCell('a', { trusted: false }),
      setOutputs('a', { index: 0, output: stdout('1') })
    );
    const changed: string[] = [];
    cell(model, 'a').outputs.changed.connect((_, { type }) => {
      changed.push(type);
    });
    apply(model, setCell('a', { trusted: true }));
    // A view follows only what goes and comes.
    expect(changed.slice(-2)).toEqual(['clear', 'add']);
    apply(model, setOutputs('a', { index: 0, append: '2' }));
    expect(outputs(model, 'a')).toEqual([stdout('12')]);
    expect(cell(model, 'a').outputs.get(0).trusted).toBe(true);
  });
});

describe('outputs', () => {
  it('come, grow and are followed by others', () => {
    const model = notebook(code('a'));
    apply(model, setOutputs('a', { index: 0, output: stdout('1\n') }));
    apply(
      model,
      setOutputs(
        'a',
        { index: 0, append: '2\n' },
        { index: 0, append: '3\n' },
        { index: 1, output: picture() },
        { index: 2, output: stdout('4\n') }
      )
    );
    apply(model, setOutputs('a', { index: 2, append: '5\n' }));
    expect(outputs(model, 'a')).toEqual([
      stdout('1\n2\n3\n'),
      picture(),
      stdout('4\n5\n')
    ]);
  });

  it('are set as a whole by dropping all first', () => {
    const model = notebook(code('a', '', [stdout('old'), picture()]));
    apply(
      model,
      setOutputs(
        'a',
        { index: 0, truncate: true },
        { index: 0, output: stdout('new') }
      )
    );
    expect(outputs(model, 'a')).toEqual([stdout('new')]);
    apply(model, setOutputs('a', { index: 0, append: 'er' }));
    expect(outputs(model, 'a')).toEqual([stdout('newer')]);
  });

  it('are replaced where they stand', () => {
    const model = notebook(
      code('a', '', [stdout('1'), picture('AAAA'), stdout('2'), picture()])
    );
    apply(model, setOutputs('a', { index: 1, output: picture('BBBB') }));
    expect(outputs(model, 'a')[1]).toEqual(picture('BBBB'));
    apply(model, setOutputs('a', { index: 2, output: stdout('3') }));
    apply(model, setOutputs('a', { index: 0, append: '+' }));
    expect(outputs(model, 'a')).toEqual([
      stdout('1+'),
      picture('BBBB'),
      stdout('3'),
      picture()
    ]);
  });

  it.each([
    [stdout('1'), picture()],
    [picture(), stdout('1')]
  ])('go and come where a stream is replaced or replaces', (from, to) => {
    const model = notebook(code('a', '', [from]));
    const changed: string[] = [];
    cell(model, 'a').outputs.changed.connect((_, { type }) => {
      changed.push(type);
    });
    apply(model, setOutputs('a', { index: 0, output: to }));
    expect(outputs(model, 'a')).toEqual([to]);
    expect(changed).toEqual(['clear', 'add']);
  });

  it('work off carriage returns as the text comes', () => {
    const model = notebook(code('a'));
    apply(model, setOutputs('a', { index: 0, output: stdout('10%') }));
    apply(model, setOutputs('a', { index: 0, append: '\r20%' }));
    apply(model, setOutputs('a', { index: 0, append: '\r30%\ndone' }));
    expect(outputs(model, 'a')).toEqual([stdout('30%\ndone')]);
  });

  it('are counted as the server does where the model joins streams', () => {
    const model = notebook(code('a'));
    apply(
      model,
      setOutputs(
        'a',
        { index: 0, output: stdout('head\n') },
        { index: 1, output: stdout('tail\n') },
        { index: 2, output: picture() }
      )
    );
    expect(outputs(model, 'a')).toEqual([stdout('head\ntail\n'), picture()]);
    apply(model, setOutputs('a', { index: 2, output: picture('BBBB') }));
    expect(outputs(model, 'a')[1]).toEqual(picture('BBBB'));
    apply(model, setOutputs('a', { index: 1, output: stdout('end\n') }));
    expect(outputs(model, 'a')[0]).toEqual(stdout('head\nend\n'));
  });

  it('that a person has cleared are not gone on with', () => {
    const model = notebook(code('a'));
    apply(model, setOutputs('a', { index: 0, output: stdout('1') }));
    cell(model, 'a').outputs.clear();
    expect(() =>
      apply(model, setOutputs('a', { index: 0, append: '2' }))
    ).toThrow(ExpectationFailed);
    expect(outputs(model, 'a')).toEqual([]);
  });

  it('of 3,000 lines come at once', () => {
    const model = notebook(code('a'));
    const lines = 'a line of output\n'.repeat(3000);
    apply(model, setOutputs('a', { index: 0, output: stdout(lines) }));
    expect(outputs(model, 'a')).toEqual([stdout(lines)]);
  });
});

describe('all or nothing', () => {
  it.each<[string, Change]>([
    ['a move', { op: 'move', cell_id: 'z', at: END }],
    ['a source', { op: 'set_source', cell_id: 'z', source: '' }],
    ['a state', setCell('z')],
    ['outputs', setOutputs('z')],
    ['text that follows nothing', setOutputs('a', { index: 0, append: '1' })],
    [
      'an output beyond the last',
      setOutputs('a', { index: 1, output: picture() })
    ],
    ['outputs of text', setOutputs('m', { index: 0, output: picture() })],
    [
      'outputs of text that was put',
      setOutputs('n', { index: 0, output: picture() })
    ],
    ['a cell deleted before', setOutputs('b')]
  ])('does nothing when something is missing: %s', (_, change) => {
    const text = (id: string) => ({
      cell_type: 'markdown',
      id,
      source: '#',
      metadata: {}
    });
    const model = notebook(code('a', '1'), code('b', '2'), text('m'));
    const before = model.toJSON();
    model.dirty = false;
    expect(() =>
      apply(
        model,
        { op: 'put', cell: text('n'), at: END },
        { op: 'set_source', cell_id: 'a', source: 'changed' },
        { op: 'delete', cell_id: 'b' },
        change
      )
    ).toThrow(ExpectationFailed);
    expect(model.toJSON()).toEqual(before);
    expect(model.dirty).toBe(false);
  });

  it.each<[string, IExpected]>([
    ['a cell more', { cells: {}, order: ['a'] }],
    ['a cell less', { cells: {}, order: ['a', 'b', 'c'] }],
    ['another order', { cells: {}, order: ['b', 'a'] }],
    ['a source', { cells: { a: ['code', 'other'] }, order: null }],
    ['a type', { cells: { a: ['markdown', '1'] }, order: null }],
    ['a cell that is gone', { cells: { z: ['code', ''] }, order: null }],
    ['a run', { cells: {}, counts: { a: 7 }, order: null }],
    ['a run of what is gone', { cells: {}, counts: { z: null }, order: null }]
  ])('does nothing when the notebook has moved: %s', (_, expected) => {
    const model = notebook(code('a', '1'), code('b', '2'));
    const change: Change = { op: 'delete', cell_id: 'b' };
    expect(() => applyChanges(model, [change], expected)).toThrow(
      ExpectationFailed
    );
    expect(ids(model)).toEqual(['a', 'b']);
  });

  it('does all when it is as expected', () => {
    const model = notebook(code('a', '1'), code('b', '2'));
    applyChanges(model, [{ op: 'delete', cell_id: 'b' }], {
      cells: { a: ['code', '1'], b: ['code', '2'] },
      counts: { a: null },
      order: ['a', 'b']
    });
    expect(ids(model)).toEqual(['a']);
  });

  it('sees in later changes what earlier ones do', () => {
    const model = notebook(code('a'));
    apply(
      model,
      { op: 'put', cell: code('n', '1'), at: END },
      { op: 'set_source', cell_id: 'n', source: '2' },
      setOutputs('n', { index: 0, output: stdout('1') }),
      setOutputs('n', { index: 0, append: '2' })
    );
    expect(cell(model, 'n').sharedModel.getSource()).toBe('2');
    expect(outputs(model, 'n')).toEqual([stdout('12')]);
  });
});

describe('in a cell that a person runs', () => {
  const X = { execution_id: 'x' };
  let model: NotebookModel;
  let runs: PersonsRuns;

  const write = (...changes: Change[]) =>
    applyChanges(model, changes, ANY, runs);
  const whole = (text: string): Change =>
    setOutputs(
      'a',
      { index: 0, truncate: true },
      { index: 0, output: stdout(text) }
    );

  /** What JupyterLab does when a person runs the cell. */
  const run = () => {
    const ran = cell(model, 'a');
    runs.add(ran);
    ran.clearExecution();
    ran.executionState = 'running';
  };

  beforeEach(() => {
    model = notebook(code('a'), code('b'));
    runs = new PersonsRuns();
    write(setCell('a'), setOutputs('a', { index: 0, output: stdout('1') }));
    run();
  });

  it('only the metadata are the agent’s from then on', () => {
    write(setOutputs('a', { index: 0, append: '2' }));
    write(whole('12'));
    const ended = { ...X, status: 'ok' };
    write(
      setCell('a', {
        agent_exec: ended,
        execution_state: 'idle',
        trusted: false
      }),
      whole('12')
    );
    const { executionCount, executionState, metadata, trusted } = cell(
      model,
      'a'
    );
    expect(outputs(model, 'a')).toEqual([]);
    expect(executionCount).toBeNull();
    expect(executionState).toBe('running');
    expect(trusted).toBe(true);
    expect(metadata.agent_exec).toEqual(ended);
  });

  it('what comes of the person’s run stays', () => {
    cell(model, 'a').outputs.add(stdout('mine'));
    cell(model, 'a').executionCount = 4;
    write(setCell('a'), setOutputs('a', { index: 0, append: '2' }));
    expect(outputs(model, 'a')).toEqual([stdout('mine')]);
    expect(cell(model, 'a').executionCount).toBe(4);
  });

  it('a later execution of an agent is shown', () => {
    const later = setCell('a', { agent_exec: { execution_id: 'y' } });
    write(later, whole('new'));
    write(setOutputs('a', { index: 0, append: 'er' }));
    expect(outputs(model, 'a')).toEqual([stdout('newer')]);
    expect(cell(model, 'a').executionCount).toBe(3);
    run();
    write(setOutputs('a', { index: 0, append: '!' }));
    write(setCell('a'), whole('12'));
    expect(outputs(model, 'a')).toEqual([]);
  });

  it('what the person decides of the agent’s outputs is done', () => {
    write(
      setCell('a', { agent_exec: { ...X, outputs: 'accepted' } }),
      whole('12')
    );
    expect(outputs(model, 'a')).toEqual([stdout('12')]);
  });

  it('another cell is not meant', () => {
    write(setCell('b'), setOutputs('b', { index: 0, output: stdout('1') }));
    expect(outputs(model, 'b')).toEqual([stdout('1')]);
  });

  it('nothing of an agent’s is remembered where none was', () => {
    runs.add(cell(model, 'b'));
    write(setCell('b'), setOutputs('b', { index: 0, output: stdout('1') }));
    expect(outputs(model, 'b')).toEqual([stdout('1')]);
  });

  it('nothing is done when it is gone', () => {
    write({ op: 'delete', cell_id: 'a' });
    expect(() => write(setCell('a'))).toThrow(ExpectationFailed);
    expect(() => write(whole('12'))).toThrow(ExpectationFailed);
  });
});

describe("a person's undo", () => {
  it('takes back their own edits only', () => {
    const model = notebook(code('a', 'mine'), code('b', 'shared'));
    const { sharedModel } = model;
    sharedModel.insertCell(0, code('p', 'new of mine'));
    cell(model, 'b').sharedModel.updateSource(0, 0, 'my ');
    apply(
      model,
      { op: 'put', cell: code('n', 'agent'), at: END },
      { op: 'set_source', cell_id: 'b', source: 'my shared agent' },
      { op: 'move', cell_id: 'n', at: { after: null, before: 'a' } },
      setCell('n'),
      setOutputs('n', { index: 0, output: stdout('1') })
    );
    sharedModel.undo();
    expect(ids(model)).toEqual(['n', 'a', 'b']);
    expect(sharedModel.canUndo()).toBe(false);
    cell(model, 'b').sharedModel.undo();
    expect(cell(model, 'b').sharedModel.getSource()).toBe('shared agent');
    expect(outputs(model, 'n')).toEqual([stdout('1')]);
  });
});

describe('a notebook that is read', () => {
  it('is what its file would be, without trust', () => {
    const model = notebook(code('a', '1', [stdout('1')]));
    cell(model, 'a').trusted = true;
    const { cells, nbformat_minor } = readNotebook(model);
    expect(cells).toEqual([code('a', '1', [stdout('1')])]);
    expect(nbformat_minor).toBe(5);
    expect(cell(model, 'a').trusted).toBe(true);
  });
});
