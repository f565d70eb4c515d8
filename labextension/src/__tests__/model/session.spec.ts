import { KEPT, PAGE, SessionModel } from '../../model/session';
import type { IActivityEvent, IExecution } from '../../tokens';
import { execution, FakeServer, session, settle, stdout } from '../fakes';

function numbered(count: number, given: Partial<IExecution> = {}) {
  return Array.from({ length: count }, (_, index) =>
    execution({ seq: index + 1, ...given })
  );
}

function event(given: Partial<IActivityEvent> = {}): IActivityEvent {
  return {
    serial: 1,
    action: 'execution',
    session_id: 's_1',
    length: 1,
    ...given
  };
}

/** A model that looks at a server with these executions. */
async function open(executions: IExecution[], active = true) {
  const server = new FakeServer();
  server.executions = executions;
  const model = new SessionModel('s_1', server, session());
  const finished: number[] = [];
  model.finished.connect((_, { seq }) => finished.push(seq));
  model.isActive = active;
  await settle();
  const seqs = () => model.executions.map(({ execution: { seq } }) => seq);
  return { server, model, seqs, finished };
}

describe('SessionModel', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('fetches nothing while nobody looks', async () => {
    const { server, model } = await open(numbered(1), false);
    model.onEvent(event());
    await settle();
    expect(server.calls).toEqual([]);
    expect(model.state.phase).toBe('loading');
  });

  it('shows the newest cells, and earlier ones when asked', async () => {
    const { model, seqs } = await open(numbered(2 * PAGE + 3));
    expect(model.state.phase).toBe('ready');
    expect(seqs()).toHaveLength(PAGE);
    expect(seqs()[PAGE - 1]).toBe(2 * PAGE + 3);
    expect(model.hasEarlier).toBe(true);
    const loading = model.loadEarlier();
    expect(model.loadingEarlier).toBe(true);
    await model.loadEarlier();
    await loading;
    await model.loadEarlier();
    expect(seqs()[0]).toBe(1);
    expect(model.hasEarlier).toBe(false);
    expect(model.loadingEarlier).toBe(false);
  });

  it('tells when earlier cells cannot be loaded, and may try again', async () => {
    const { server, model } = await open(numbered(PAGE + 1));
    server.failure = new Error('down');
    await expect(model.loadEarlier()).rejects.toThrow('down');
    expect(model.loadingEarlier).toBe(false);
    server.failure = null;
    await model.loadEarlier();
    expect(model.hasEarlier).toBe(false);
  });

  it('leads to a cell that is shown', async () => {
    const { server, model } = await open(numbered(3));
    const revealed: number[] = [];
    model.revealed.connect((_, each) => revealed.push(each.execution.seq));
    server.forget();
    model.reveal('x_2');
    expect(revealed).toEqual([2]);
    expect(server.calls).toEqual([]);
  });

  it('leads to a cell that is not far back, and keeps those after it', async () => {
    const { model, seqs } = await open(numbered(100));
    const revealed: number[] = [];
    model.revealed.connect((_, each) => revealed.push(each.execution.seq));
    model.reveal('x_40');
    await settle();
    expect(revealed).toEqual([40]);
    expect(seqs()[0]).toBe(30);
    expect(seqs()).toHaveLength(71);
    expect(model.hasLater).toBe(false);
  });

  it('leads to a cell that is far back, and from there to the end', async () => {
    const { server, model, seqs } = await open(numbered(300));
    const revealed: number[] = [];
    model.revealed.connect((_, each) => revealed.push(each.execution.seq));
    model.reveal('x_50');
    await settle();
    expect(revealed).toEqual([50]);
    expect(seqs()[0]).toBe(40);
    expect(seqs()).toHaveLength(PAGE);
    expect(model.hasLater).toBe(true);
    server.put(execution({ seq: 301 }));
    server.forget();
    model.onEvent(event());
    await settle();
    expect(server.calls).toEqual([]);
    model.requestSync(true);
    await settle();
    expect(seqs()).toHaveLength(PAGE);
    await model.loadLater();
    expect(seqs()).toHaveLength(2 * PAGE);
    model.showNewest();
    await settle();
    expect(model.hasLater).toBe(false);
    expect(seqs()[PAGE - 1]).toBe(301);
  });

  it('finds the end of a session by walking there', async () => {
    const { model, seqs } = await open(numbered(160));
    model.reveal('x_1');
    await settle();
    expect(seqs()[0]).toBe(1);
    while (model.hasLater) {
      await model.loadLater();
    }
    expect(seqs()[seqs().length - 1]).toBe(160);
    model.reveal('x_160');
    expect(seqs()).toHaveLength(KEPT);
  });

  it('leads to a cell when nothing is shown yet, and when somebody looks', async () => {
    const { model } = await open(numbered(300), false);
    const revealed: number[] = [];
    model.revealed.connect((_, each) => revealed.push(each.execution.seq));
    model.reveal('x_9');
    await settle();
    expect(revealed).toEqual([]);
    model.isActive = true;
    await settle();
    expect(revealed).toEqual([9]);
    model.reveal('x_299');
    await settle();
    expect(revealed).toEqual([9, 299]);
  });

  it('leads to a cell that has just come', async () => {
    const { server, model, seqs } = await open(numbered(3));
    server.put(execution({ seq: 4 }));
    const revealed: number[] = [];
    model.revealed.connect((_, each) => revealed.push(each.execution.seq));
    model.reveal('x_4');
    await settle();
    expect(revealed).toEqual([4]);
    expect(seqs()).toEqual([1, 2, 3, 4]);
  });

  it('says that a cell which it should lead to is not there', async () => {
    const { model } = await open(numbered(3));
    model.reveal('x_99');
    await settle();
    expect(model.state.phase).toBe('error');
    model.requestSync();
    await settle();
    expect(model.state.phase).toBe('ready');
  });

  it('says that an empty session is empty', async () => {
    const { model } = await open([]);
    expect(model.state.phase).toBe('ready');
    expect(model.hasEarlier).toBe(false);
  });

  it('reads only what may have changed after an event', async () => {
    const { server, model, seqs, finished } = await open([
      execution({ seq: 1 }),
      execution({ seq: 2, status: 'queued' })
    ]);
    server.forget();
    server.put(execution({ seq: 2 }), execution({ seq: 3 }));
    model.onEvent(event());
    await settle();
    expect(server.calls).toEqual(['s_1 after 1']);
    expect(seqs()).toEqual([1, 2, 3]);
    expect(finished).toEqual([2]);
  });

  it('reads after the last cell when all have finished', async () => {
    const { server, model } = await open(numbered(2));
    server.forget();
    model.requestSync();
    await settle();
    expect(server.calls).toEqual(['s_1 after 2']);
  });

  it('reads all that is shown again after a gap', async () => {
    const { server, model } = await open(numbered(2));
    server.forget();
    server.put(execution({ seq: 1, status: 'error' }));
    model.requestSync(true);
    await settle();
    expect(server.calls).toEqual(['s_1 after 0']);
    expect(model.executions[0].execution.status).toBe('error');
  });

  it('reads a cell again that changed after it had finished', async () => {
    const { server, model } = await open(numbered(3));
    server.put(execution({ seq: 1, cell: { outputs: [stdout('late')] } }));
    server.forget();
    model.onEvent(event({ execution_id: 'x_1' }));
    await settle();
    expect(server.calls).toEqual(['s_1 after 3', 'execution x_1']);
    expect(model.executions[0].outputs).toEqual([stdout('late')]);
  });

  it('keeps a bounded number of cells, and more for who asks', async () => {
    const { server, model, seqs } = await open(numbered(KEPT));
    for (let more = 1; more <= 5; more++) {
      server.put(...numbered(KEPT + more * PAGE).slice(KEPT));
      model.onEvent(event());
      await settle();
    }
    expect(seqs()).toHaveLength(KEPT);
    await model.loadEarlier();
    expect(seqs()).toHaveLength(KEPT + PAGE);
  });

  it('keeps earlier cells that were asked for when it reads all again', async () => {
    const { model, seqs } = await open(numbered(9 * PAGE));
    for (let page = 1; page < 9; page++) {
      await model.loadEarlier();
    }
    model.requestSync(true);
    await settle();
    expect(seqs()).toHaveLength(9 * PAGE);
  });

  it('starts from the newest when it is far behind', async () => {
    const { server, model, seqs } = await open(numbered(3));
    server.put(...numbered(500).slice(3));
    model.onEvent(event());
    await settle();
    expect(seqs()[0]).toBe(500 - PAGE + 1);
    expect(seqs()).toHaveLength(PAGE);
  });

  it('says what failed, and gets over it', async () => {
    const { server, model } = await open(numbered(2));
    server.failure = new Error('down');
    model.requestSync();
    await settle();
    expect(model.state).toMatchObject({ phase: 'error' });
    expect(model.executions).toHaveLength(2);
    server.failure = null;
    server.forget();
    model.requestSync();
    await settle();
    expect(model.state.phase).toBe('ready');
    expect(server.calls).toEqual(['s_1 after 0']);
  });

  it('reads again when the list of sessions knows more', async () => {
    const { server, model } = await open(numbered(1));
    server.forget();
    model.setSession(session({ title: 'New' }));
    await settle();
    expect(server.calls).toEqual([]);
    expect(model.session?.title).toBe('New');
    model.setSession(session({ chain: { head: 'g', length: 2 } }));
    await settle();
    expect(server.calls).toEqual(['s_1 after 1']);
  });

  it('follows what runs, and takes its outputs from nowhere else', async () => {
    const running = execution({ seq: 1, status: 'running' });
    const { server, model, finished } = await open([running]);
    const stream = server.streams.get('x_1');
    stream?.tell({
      kind: 'output',
      change: { index: 0, output: stdout('a') }
    });
    await settle();
    expect(model.executions[0].outputs).toEqual([stdout('a')]);
    // An answer that is older than the stream must not take the output away.
    model.requestSync(true);
    await settle();
    expect(model.executions[0].outputs).toEqual([stdout('a')]);
    const done = execution({ seq: 1, cell: { outputs: [stdout('ab')] } });
    server.put(done);
    stream?.tell({ kind: 'execution', execution: done, finished: true });
    stream?.end();
    await settle();
    expect(finished).toEqual([1]);
    expect(model.executions[0].outputs).toEqual([stdout('ab')]);
  });

  it('does not take a running snapshot over what has finished', async () => {
    const { server, model } = await open([execution({ seq: 1 })]);
    server.put(execution({ seq: 1, status: 'running' }));
    model.requestSync(true);
    await settle();
    expect(model.executions[0].execution.status).toBe('ok');
  });

  it('goes from one that runs to the next', async () => {
    const { server, model } = await open([
      execution({ seq: 1, status: 'running' }),
      execution({ seq: 2, status: 'queued' })
    ]);
    const done = execution({ seq: 1 });
    server.put(done, execution({ seq: 2, status: 'running' }));
    server.streams
      .get('x_1')
      ?.tell({ kind: 'execution', execution: done, finished: true });
    server.streams.get('x_1')?.end();
    await settle();
    model.onEvent(event());
    await settle();
    expect([...server.streams.keys()]).toEqual(['x_1', 'x_2']);
  });

  it('stops following when nobody looks, and begins again', async () => {
    const { server, model } = await open([
      execution({ seq: 1, status: 'running' })
    ]);
    const first = server.streams.get('x_1');
    model.isActive = false;
    await settle();
    expect(first?.aborted).toBe(true);
    model.isActive = true;
    model.isActive = true;
    await settle();
    expect(server.streams.get('x_1')).not.toBe(first);
  });

  it('does without the stream when a step does not fit', async () => {
    const { server, model } = await open([
      execution({ seq: 1, status: 'running' })
    ]);
    server.put(
      execution({
        seq: 1,
        status: 'running',
        cell: { outputs: [stdout('read')] }
      })
    );
    server.streams
      .get('x_1')
      ?.tell({ kind: 'output', change: { index: 9, append: 'x' } });
    await settle();
    expect(model.executions[0].outputs).toEqual([stdout('read')]);
    expect(server.calls.filter(call => call === 'follow x_1')).toHaveLength(1);
  });

  it('does without the stream when it fails', async () => {
    const { server, model } = await open([
      execution({ seq: 1, status: 'running' })
    ]);
    server.streams.get('x_1')?.tell({
      kind: 'status',
      change: { status: 'running', execution_count: 7, started_at: null }
    });
    server.streams.get('x_1')?.fail(new Error('refused'));
    await settle();
    model.onEvent(event());
    await settle();
    expect(server.calls.filter(call => call === 'follow x_1')).toHaveLength(1);
  });

  it('lets go of everything when it is disposed', async () => {
    const { server, model } = await open([
      execution({ seq: 1, status: 'running' })
    ]);
    const [cell] = model.executions;
    model.requestSync();
    model.dispose();
    model.dispose();
    await settle();
    expect(server.streams.get('x_1')?.aborted).toBe(true);
    expect(cell.isDisposed).toBe(true);
    server.forget();
    model.requestSync(true);
    await settle();
    expect(server.calls).toEqual([]);
  });

  it('takes no answer that comes after it was disposed', async () => {
    const { model } = await open(numbered(PAGE + 1));
    const loading = model.loadEarlier();
    model.requestSync(true);
    model.dispose();
    await loading;
    await settle();
    expect(model.executions).toHaveLength(PAGE);
  });

  it('takes no cells around another after it was disposed', async () => {
    const { model } = await open(numbered(300));
    model.reveal('x_1');
    model.dispose();
    await settle();
    expect(model.executions[0].execution.seq).toBe(281);
  });
});
