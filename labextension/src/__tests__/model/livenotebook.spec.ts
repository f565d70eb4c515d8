import { NotebookModel } from '@jupyterlab/notebook';
import { outputChanges } from '../../api/outputs';
import { LiveNotebook } from '../../model/livenotebook';
import type { IExecution } from '../../tokens';
import { execution, FakeServer, session, settle, stdout } from '../fakes';

jest.useFakeTimers();

/** An execution with the metadata that its cell has. */
function run(seq: number, given: Partial<IExecution> = {}): IExecution {
  const status = given.status ?? 'ok';
  const outputs = given.cell?.outputs ?? [stdout(`${seq}\n`)];
  const agent_exec = { execution_id: `x_${seq}`, seq, status };
  return execution({
    seq,
    source: `cell ${seq}`,
    ...given,
    cell: { outputs, metadata: { agent_exec } }
  });
}

/** A notebook made of the export of one cell. */
function open(server: FakeServer) {
  const model = new NotebookModel();
  const shown = run(1);
  model.fromJSON({
    cells: [
      {
        cell_type: 'code',
        id: shown.id,
        source: shown.source,
        metadata: { ...shown.cell.metadata },
        outputs: shown.cell.outputs,
        execution_count: 1
      }
    ],
    metadata: {},
    nbformat: 4,
    nbformat_minor: 5
  });
  const live = new LiveNotebook({
    api: server,
    events: server.events,
    model,
    sessionId: 's_1',
    hold: change => change()
  });
  const cells = () => model.sharedModel.toJSON().cells;
  return { cells, live, model };
}

describe('outputChanges', () => {
  const png = { output_type: 'display_data', data: {}, metadata: {} };

  it.each([
    ['nothing', [stdout('a')], [stdout('a')], []],
    [
      'text that grew',
      [stdout('a')],
      [stdout('ab')],
      [{ index: 0, append: 'b' }]
    ],
    [
      'another text',
      [stdout('a')],
      [stdout('b')],
      [
        { index: 0, truncate: true },
        { index: 0, output: stdout('b') }
      ]
    ],
    ['more', [stdout('a')], [stdout('a'), png], [{ index: 1, output: png }]],
    ['less', [stdout('a'), png], [stdout('a')], [{ index: 1, truncate: true }]]
  ])('finds %s', (_, before, after, changes) => {
    expect(outputChanges(before, after)).toEqual(changes);
  });
});

describe('LiveNotebook', () => {
  it('reads only what is new, and nothing while nobody looks', async () => {
    const server = new FakeServer();
    server.sessions = [session()];
    server.put(run(1), run(2));
    const { cells, live } = open(server);
    server.emit(1);
    await settle();
    expect(server.calls).toEqual([]);
    live.isActive = true;
    await settle();
    expect(server.calls).toEqual(['session s_1', 's_1 after 1']);
    expect(cells().map(({ source }) => source)).toEqual(['cell 1', 'cell 2']);
    expect(live.state.phase).toBe('ready');
    live.isActive = false;
    server.forget();
    server.emit(2);
    await settle(60_000);
    expect(server.calls).toEqual([]);
    live.dispose();
  });

  it('puts a long past in by the page, untrusted, and says whose it is first', async () => {
    const server = new FakeServer();
    server.sessions = [session()];
    for (let seq = 1; seq <= 120; seq++) {
      server.put(run(seq));
    }
    const past = run(7);
    past.cell.metadata = { ...past.cell.metadata, trusted: true };
    server.put(past);
    const { cells, live, model } = open(server);
    const told: [boolean, number][] = [];
    live.changed.connect(() =>
      told.push([live.session !== null, model.cells.length])
    );
    let steps = 0;
    model.cells.changed.connect(() => steps++);
    live.isActive = true;
    await settle();
    expect(cells().map(({ source }) => source)).toEqual(
      Array.from({ length: 120 }, (_, index) => `cell ${index + 1}`)
    );
    expect(cells()[6].outputs).toEqual([stdout('7\n')]);
    expect(Array.from(model.cells).some(each => each.trusted)).toBe(false);
    expect(steps).toBe(3);
    expect(told[0]).toEqual([true, 1]);
    live.dispose();
  });

  it('takes what changed after it had finished', async () => {
    const server = new FakeServer();
    server.sessions = [session()];
    server.put(run(1));
    const { cells, live } = open(server);
    live.isActive = true;
    await settle();
    server.put(run(1, { cell: { outputs: [stdout('1\nlate')] } }));
    server.emit(2, { execution_id: 'x_1' });
    await settle();
    expect(cells()[0].outputs).toEqual([stdout('1\nlate')]);
    live.dispose();
  });

  it('follows what runs, and reads it once more when it has ended', async () => {
    const server = new FakeServer();
    server.sessions = [session()];
    server.put(run(1), run(2, { status: 'running', cell: { outputs: [] } }));
    const { cells, live } = open(server);
    live.isActive = true;
    await settle();
    const stream = server.streams.get('x_2');
    stream?.tell({ kind: 'output', change: { index: 0, output: stdout('a') } });
    stream?.tell({ kind: 'output', change: { index: 0, append: 'b' } });
    await settle();
    expect(cells()[1].outputs).toEqual([stdout('ab')]);
    server.put(run(2, { cell: { outputs: [stdout('abc')] } }));
    stream?.end();
    await settle();
    expect(cells()[1].outputs).toEqual([stdout('abc')]);
    live.dispose();
    live.dispose();
    expect(live.isDisposed).toBe(true);
  });

  it('says that the server cannot be reached, and tries again', async () => {
    const server = new FakeServer();
    server.sessions = [session()];
    server.put(run(1), run(2));
    const { cells, live } = open(server);
    server.failure = new Error('no');
    live.isActive = true;
    await settle();
    expect(live.state.phase).toBe('error');
    server.failure = null;
    await settle(31_000);
    expect(live.state.phase).toBe('ready');
    expect(live.session?.id).toBe('s_1');
    expect(cells()).toHaveLength(2);
    live.dispose();
  });
});
