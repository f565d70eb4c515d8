import { AHEAD, KEPT, PAGE } from '../../model/known';
import { SessionModel } from '../../model/session';
import { EVENTS_PAGE } from '../../model/sessionevents';
import type { IActivityEvent, IExecution, IJournalEvent } from '../../tokens';
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

/** An entry after an execution. */
function journalEvent(n: number, after_seq: number): IJournalEvent {
  return {
    n,
    by_kind: 'person',
    after_seq,
    type: 'interrupted',
    at: '2026-01-02T03:04:05.000Z',
    by: null,
    execution_id: null,
    text: null
  };
}

/** What a server was asked for besides entries between cells. */
function asked({ calls }: FakeServer): string[] {
  return calls.filter(call => !call.startsWith('events'));
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

  it('knows the newest cells, and others when somebody looks at them', async () => {
    const { server, model, seqs } = await open(numbered(10_000));
    expect(model.state.phase).toBe('ready');
    expect(model.last).toBe(10_000);
    expect(seqs()).toHaveLength(PAGE);
    server.forget();
    model.look(5000, 5009);
    await settle();
    expect(model.at(5000)?.execution.seq).toBe(5000);
    expect(model.at(5009 + AHEAD)).not.toBeNull();
    expect(model.at(5000 - AHEAD)).not.toBeNull();
    expect(seqs().length).toBeLessThan(10 + 2 * KEPT);
    expect(model.at(10_000)).toBeNull();
    expect(server.calls[0]).toBe('s_1 after 4999');
  });

  it('fetches nothing for what is known', async () => {
    const { server, model } = await open(numbered(PAGE));
    server.forget();
    model.look(1, 5);
    await settle();
    expect(server.calls).toEqual([]);
  });

  it('asks only for what is looked at in the end', async () => {
    const { server, model } = await open(numbered(10_000));
    server.forget();
    for (let first = 9000; first > 0; first -= 1000) {
      model.look(first, first + 9);
    }
    await settle();
    expect(server.calls[0]).toBe('s_1 after 8999');
    expect(server.calls[1]).toBe('s_1 after 999');
    expect(model.at(9000)).toBeNull();
    expect(model.at(1000)).not.toBeNull();
    expect(model.state.phase).toBe('ready');
  });

  it('gives up a request that nobody waits for any more', async () => {
    const { server, model } = await open(numbered(1000));
    server.holding = true;
    model.look(500, 509);
    await settle();
    expect(server.aborted).toBe(0);
    model.look(505, 514);
    await settle();
    expect(server.aborted).toBe(0);
    server.holding = false;
    model.look(100, 109);
    await settle();
    expect(server.aborted).toBe(1);
    expect(model.at(100)).not.toBeNull();
    expect(model.at(500)).toBeNull();
  });

  it('gives up its request when nobody looks', async () => {
    const { server, model } = await open(numbered(1000));
    server.holding = true;
    model.look(500, 509);
    await settle();
    model.isActive = false;
    await settle();
    expect(server.aborted).toBe(1);
    expect(model.state.phase).toBe('ready');
    server.holding = false;
    model.isActive = true;
    await settle();
    expect(model.at(500)).not.toBeNull();
  });

  it('says what failed when somebody scrolled, and does not ask on and on', async () => {
    const { server, model } = await open(numbered(1000));
    server.failure = new Error('down');
    server.forget();
    model.look(500, 509);
    await settle();
    model.look(501, 510);
    await settle();
    expect(model.state.phase).toBe('error');
    expect(server.calls).toHaveLength(1);
    server.failure = null;
    model.requestSync(true);
    await settle();
    expect(model.state.phase).toBe('ready');
    expect(model.at(501)).not.toBeNull();
  });

  it('keeps what still runs and what is held, however far away', async () => {
    const executions = numbered(1000);
    executions[989] = execution({ seq: 990, status: 'running' });
    const { model } = await open(executions);
    model.look(985, 1000);
    model.look(500, 509, [985]);
    await settle();
    expect(model.at(985)).not.toBeNull();
    expect(model.at(986)).toBeNull();
    expect(model.at(990)).not.toBeNull();
    model.look(500, 509);
    expect(model.at(985)).toBeNull();
  });

  it('makes no cells of what is new and far away, unless it runs', async () => {
    const { server, model, finished } = await open(numbered(1000));
    model.look(1, 10);
    await settle();
    server.put(execution({ seq: 1001, status: 'running' }));
    server.put(execution({ seq: 1002 }));
    model.onEvent(event());
    await settle();
    expect(model.last).toBe(1002);
    expect(model.at(1001)?.execution.status).toBe('running');
    expect(model.at(1002)).toBeNull();
    server.put(execution({ seq: 1001 }));
    model.onEvent(event({ execution_id: 'x_1001' }));
    await settle();
    expect(finished).toEqual([1001]);
    model.look(1, 10);
    expect(model.at(1001)).toBeNull();
  });

  it('shows at once what is said of the whole session', async () => {
    const { server, model } = await open(numbered(3));
    const review = {
      verdict: 'approved' as const,
      comment: null,
      by: 'Ada',
      at: '2026-01-02T03:04:05.000Z',
      whole_session: true
    };
    server.put(...[1, 2, 3].map(seq => execution({ seq, review })));
    model.onEvent(event());
    await settle();
    expect(model.at(2)?.execution.review).toBeNull();
    model.onEvent(event({ action: 'session' }));
    await settle();
    expect(model.at(2)?.execution.review).toEqual(review);
  });

  it('passes over numbers that there are not', async () => {
    const all = numbered(100);
    const { server, model } = await open(
      all.filter(({ seq }) => seq !== 50 && seq !== 90)
    );
    model.look(45, 55);
    await settle();
    expect(model.isAbsent(50)).toBe(true);
    expect(model.isAbsent(90)).toBe(true);
    expect(model.isAbsent(51)).toBe(false);
    server.put(execution({ seq: 50 }));
    model.requestSync(true);
    await settle();
    expect(model.isAbsent(50)).toBe(false);
  });

  it('knows the entries between cells', async () => {
    const { server, model } = await open(numbered(2));
    expect(model.eventsAfter(1)).toEqual([]);
    server.journal = [journalEvent(3, 0), journalEvent(7, 1)];
    model.onEvent(event());
    await settle();
    const [first] = model.eventsAfter(1);
    expect(first.n).toBe(7);
    const known = model.eventsAfter(0);
    server.forget();
    server.journal.push(journalEvent(9, 1));
    model.onEvent(event());
    await settle();
    expect(server.calls).toContain('events of s_1 after 7');
    expect(model.eventsAfter(1).map(({ n }) => n)).toEqual([7, 9]);
    expect(model.eventsAfter(0)).toBe(known);
  });

  it('reads many entries page by page', async () => {
    const { server, model } = await open(numbered(1));
    server.journal = Array.from({ length: 2 * EVENTS_PAGE + 1 }, (_, index) =>
      journalEvent(index + 1, 1)
    );
    model.requestSync();
    await settle();
    expect(model.eventsAfter(1)).toHaveLength(2 * EVENTS_PAGE + 1);
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

  it('leads to a cell that is far back, and knows those around it', async () => {
    const { model, seqs } = await open(numbered(300));
    const revealed: number[] = [];
    model.revealed.connect((_, each) => {
      revealed.push(each.execution.seq);
      model.look(each.execution.seq - 3, each.execution.seq + 3);
    });
    model.look(290, 300);
    model.reveal('x_50');
    // The view is where it was until the cell is known.
    model.look(290, 300);
    await settle();
    expect(revealed).toEqual([50]);
    expect(seqs()).toContain(45);
    expect(seqs()).toContain(55);
    expect(seqs()).not.toContain(290);
    expect(model.last).toBe(300);
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

  it('looks no longer for a cell of another session', async () => {
    const { server, model } = await open(numbered(3));
    jest
      .spyOn(server, 'getExecution')
      .mockResolvedValue(execution({ id: 'x_other', seq: 2 }));
    model.reveal('x_other');
    await settle();
    expect(server.getExecution).toHaveBeenCalledTimes(1);
    model.requestSync();
    await settle();
    expect(server.getExecution).toHaveBeenCalledTimes(1);
    expect(model.state.phase).toBe('ready');
  });

  it('says that an empty session is empty', async () => {
    const { model } = await open([]);
    expect(model.state.phase).toBe('ready');
    expect(model.last).toBe(0);
    expect(model.executions).toEqual([]);
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
    expect(asked(server)).toEqual(['s_1 after 1']);
    expect(seqs()).toEqual([1, 2, 3]);
    expect(finished).toEqual([2]);
  });

  it('reads after the last cell when all have finished', async () => {
    const { server, model } = await open(numbered(2));
    server.forget();
    model.requestSync();
    await settle();
    expect(asked(server)).toEqual(['s_1 after 2']);
  });

  it('reads all that is shown again after a gap', async () => {
    const { server, model } = await open(numbered(2));
    server.forget();
    server.put(execution({ seq: 1, status: 'error' }));
    model.requestSync(true);
    await settle();
    expect(asked(server)).toEqual(['s_1 after 0', 's_1 after 2']);
    expect(model.executions[0].execution.status).toBe('error');
  });

  it('reads a cell again that changed after it had finished', async () => {
    const { server, model } = await open(numbered(3));
    server.put(execution({ seq: 1, cell: { outputs: [stdout('late')] } }));
    server.forget();
    model.onEvent(event({ execution_id: 'x_1' }));
    await settle();
    expect(asked(server)).toEqual(['s_1 after 3', 'execution x_1']);
    expect(model.executions[0].outputs).toEqual([stdout('late')]);
  });

  it('keeps a bounded number of cells while new ones come', async () => {
    const { server, model, seqs } = await open(numbered(KEPT));
    for (let more = 1; more <= 5; more++) {
      server.put(...numbered(KEPT + more * PAGE).slice(KEPT));
      model.onEvent(event());
      await settle();
      model.look(model.last - 5, model.last);
    }
    expect(seqs()).toHaveLength(KEPT + 6);
    expect(model.last).toBe(KEPT + 5 * PAGE);
  });

  it('starts from the newest when it is far behind', async () => {
    const { server, model, seqs } = await open(numbered(3));
    server.put(...numbered(500).slice(3));
    model.onEvent(event());
    await settle();
    expect(model.last).toBe(500);
    expect(seqs()).toContain(500 - PAGE + 1);
    expect(seqs()).not.toContain(300);
    expect(model.isAbsent(300)).toBe(false);
  });

  it('reads what still runs when it is far behind', async () => {
    const { server, model } = await open([
      execution({ seq: 1, status: 'running' }),
      execution({ seq: 2, status: 'queued' })
    ]);
    server.put(...numbered(500));
    server.put(execution({ seq: 300, status: 'queued' }));
    model.look(1, 2);
    model.onEvent(event());
    await settle();
    expect(model.at(1)?.execution.status).toBe('ok');
    expect(model.last).toBe(500);
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
    expect(asked(server)).toEqual(['s_1 after 0', 's_1 after 2']);
  });

  it('reads again when the list of sessions knows more', async () => {
    const { server, model } = await open(numbered(1));
    server.forget();
    model.setSession(session({ title: 'New' }));
    await settle();
    expect(server.calls).toEqual([]);
    expect(model.session?.title).toBe('New');
    model.setSession(
      session({ chain: { head: 'g', length: 2, signature: null } })
    );
    await settle();
    expect(asked(server)).toEqual(['s_1 after 1']);
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

  it('leaves open what was seen to come when a list says that it has ended', async () => {
    const { server, model } = await open([
      execution({ seq: 1, status: 'running' })
    ]);
    server.streams.get('x_1')?.tell({
      kind: 'output',
      change: { index: 0, output: stdout('long') }
    });
    await settle();
    const left_out = [{ index: 0, bytes: 9000, mimetypes: ['text/plain'] }];
    server.put(
      execution({ seq: 1, cell: { outputs: [stdout('')] }, left_out })
    );
    model.requestSync();
    await settle();
    expect(model.at(1)?.execution.status).toBe('ok');
    expect(model.at(1)?.outputs).toEqual([stdout('long')]);
    expect(model.at(1)?.execution.left_out).toEqual([]);
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

  it('follows again when a server that was away is back', async () => {
    const { server, model } = await open([execution({ status: 'running' })]);
    server.failure = new Error('away');
    server.streams.get('x_1')?.fail(new Error('away'));
    await settle();
    expect(model.state.phase).toBe('error');
    server.failure = null;
    server.forget();
    model.requestSync();
    await settle();
    expect(server.calls).toContain('follow x_1');
  });

  it('does without the stream when it fails', async () => {
    const { server, model } = await open([
      execution({ seq: 1, status: 'running' })
    ]);
    server.streams.get('x_1')?.tell({
      kind: 'status',
      change: {
        status: 'running',
        execution_count: 7,
        started_at: null,
        waiting_for: null,
        input: null
      }
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
    const { model } = await open(numbered(300));
    model.look(100, 109);
    model.requestSync(true);
    model.reveal('x_1');
    model.dispose();
    await settle();
    expect(model.at(100)).toBeNull();
    expect(model.at(1)).toBeNull();
  });

  it('asks for cells without what is large in them', async () => {
    const { server, model } = await open(numbered(300));
    const asked = jest.spyOn(server, 'listExecutions');
    model.look(100, 109);
    model.requestSync(true);
    await settle();
    expect(asked.mock.calls.length).toBeGreaterThan(2);
    expect(asked.mock.calls.every(([, range]) => range.brief)).toBe(true);
  });
});
