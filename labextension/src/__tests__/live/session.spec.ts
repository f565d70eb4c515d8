import { LiveModel } from '../../live/live';
import { PAGE } from '../../api/client';
import { FIRST_PAGE, SessionModel } from '../../live/session';
import { EVENTS_PAGE } from '../../live/sessionevents';
import type { IExecution, IJournalEvent } from '../../tokens';
import {
  execution,
  FakeServer,
  proposal,
  proposedEdit,
  session,
  settle,
  stdout
} from '../fakes';

function numbered(count: number, given: Partial<IExecution> = {}) {
  return Array.from({ length: count }, (_, index) =>
    execution({ seq: index + 1, ...given })
  );
}

/** An entry after an execution. */
function journalEvent(n: number, after_seq: number): IJournalEvent {
  return {
    n,
    by_kind: 'person',
    after_seq,
    type: 'interrupted',
    at: '2026-01-02T03:04:05.000Z',
    by: null
  };
}

/** What a server was asked for besides entries between cells, and what goes on. */
function asked({ calls }: FakeServer): string[] {
  return calls.filter(call => !/^(events|approvals)/.test(call));
}

/** A model that looks at a server with these executions. */
async function open(executions: IExecution[], active = true) {
  const server = new FakeServer();
  server.executions = executions;
  server.sessions = [session()];
  const live = new LiveModel(server, server.events);
  let serial = 1;
  server.emit(serial, { action: 'kernel' });
  await settle();
  server.forget();
  const emit = (given = {}) => server.emit(++serial, given);
  const model = new SessionModel('s_1', live);
  const finished: number[] = [];
  model.finished.connect((_, { seq }) => finished.push(seq));
  if (active) {
    model.follow();
  }
  await settle();
  const seqs = () => model.executions.map(({ execution: { seq } }) => seq);
  return { emit, finished, live, model, seqs, server };
}

describe('SessionModel', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('reads proposed edits when one was proposed or decided', async () => {
    const { server, model } = await open([]);
    const list = jest.spyOn(server, 'listProposals');
    model.requestSync();
    await settle();
    expect(list).not.toHaveBeenCalled();
    server.proposals = [
      proposal([proposedEdit({ id: 'p.0', kind: 'delete' })])
    ];
    server.journal = [{ ...journalEvent(1, 0), type: 'edits_proposed' }];
    model.requestSync();
    await settle();
    expect(model.edits.map(({ id }) => id)).toEqual(['p.0']);
    const kept = { ...model.edits[0], status: 'kept' as const };
    server.proposals = [proposal([kept])];
    server.journal.push({ ...journalEvent(2, 0), type: 'edits_decided' });
    list.mockRejectedValueOnce(new Error('away'));
    model.requestSync();
    await settle();
    expect(model.state.phase).toBe('error');
    model.requestSync();
    await settle();
    expect(model.edits).toEqual([kept]);
    model.requestSync();
    await settle();
    expect(list).toHaveBeenCalledTimes(3);
    expect(list).toHaveBeenLastCalledWith(null, 's_1');
  });

  it('fetches nothing while nobody looks', async () => {
    const { emit, server, model } = await open(numbered(1), false);
    emit();
    await settle();
    expect(asked(server)).toEqual([]);
    expect(model.state.phase).toBe('loading');
  });

  it('knows all cells, page by page', async () => {
    const { server, model, seqs } = await open(numbered(2 * PAGE + 3));
    expect(model.state.phase).toBe('ready');
    expect(model.last).toBe(2 * PAGE + 3);
    expect(asked(server)).toEqual([
      's_1 after 0',
      `s_1 after ${PAGE}`,
      `s_1 after ${2 * PAGE}`
    ]);
    expect(seqs()).toEqual(numbered(2 * PAGE + 3).map(({ seq }) => seq));
  });

  it('reads what it does not know while nobody looks', async () => {
    const { server, model, seqs } = await open(numbered(3), false);
    await model.readAll();
    expect(seqs()).toEqual([1, 2, 3]);
    server.put(execution({ seq: 4 }));
    server.forget();
    await model.readAll();
    expect(server.calls).toEqual(['s_1 after 3']);
    expect(seqs()).toEqual([1, 2, 3, 4]);
  });

  it('reads what a window shows first, and the rest once', async () => {
    const { server, model } = await open(numbered(FIRST_PAGE + 9), false);
    await model.readFirst();
    await model.readFirst();
    expect(model.last).toBe(FIRST_PAGE);
    model.follow();
    expect(model.state.phase).toBe('loading');
    await settle();
    expect(model.last).toBe(FIRST_PAGE + 9);
    expect(asked(server)).toEqual(['s_1 after 0', `s_1 after ${FIRST_PAGE}`]);
  });

  it('knows the entries between cells', async () => {
    const { emit, server, model } = await open(numbered(2));
    expect(model.eventsAfter(1)).toEqual([]);
    server.journal = [journalEvent(3, 0), journalEvent(7, 1)];
    emit();
    await settle();
    const [first] = model.eventsAfter(1);
    expect(first.n).toBe(7);
    const known = model.eventsAfter(0);
    server.forget();
    server.journal.push(journalEvent(9, 1));
    emit();
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

  it('says that an empty session is empty', async () => {
    const { model } = await open([]);
    expect(model.state.phase).toBe('ready');
    expect(model.last).toBe(0);
    expect(model.executions).toEqual([]);
  });

  it('reads only what may have changed after an event', async () => {
    const { emit, server, seqs, finished } = await open([
      execution({ seq: 1 }),
      execution({ seq: 2, status: 'queued' })
    ]);
    server.forget();
    server.put(execution({ seq: 2 }), execution({ seq: 3 }));
    emit();
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
    expect(asked(server)).toEqual(['s_1 after 0']);
    expect(model.executions[0].execution.status).toBe('error');
  });

  it('reads a cell again that changed after it had finished', async () => {
    const { emit, server, model } = await open(numbered(3));
    server.put(execution({ seq: 1, cell: { outputs: [stdout('late')] } }));
    server.forget();
    emit({ execution_id: 'x_1' });
    await settle();
    expect(asked(server)).toEqual(['s_1 after 3', 'execution x_1']);
    expect(model.executions[0].outputs).toEqual([stdout('late')]);
  });

  it('reads all that came while it was away', async () => {
    const { emit, server, seqs } = await open(numbered(3));
    server.put(...numbered(2 * PAGE + 9).slice(3));
    emit();
    await settle();
    expect(seqs()).toEqual(numbered(2 * PAGE + 9).map(({ seq }) => seq));
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
    expect(asked(server)).toEqual(['s_1 after 0']);
  });

  it('reads again when more has happened than was heard', async () => {
    const { live, model, server } = await open(numbered(1));
    server.forget();
    server.sessions = [session({ title: 'New' })];
    await live.refresh();
    expect(asked(server)).toEqual([]);
    expect(model.session?.title).toBe('New');
    server.sessions = [session({ chain: { head: 'g', length: 2 } })];
    await live.refresh();
    expect(asked(server)).toEqual(['s_1 after 1']);
  });

  it('reads a session that is not open, and no more when it is closed', async () => {
    const { emit, live, model, server } = await open(numbered(1));
    server.sessions = [session({ status: 'closed' })];
    server.forget();
    emit({ action: 'closed' });
    await settle();
    expect(model.session?.status).toBe('closed');
    expect(asked(server)).toContain('session s_1');
    server.forget();
    await live.refresh();
    expect(asked(server)).toEqual([]);
  });

  it('follows what runs, and takes its outputs from nowhere else', async () => {
    const running = execution({ seq: 1, status: 'running' });
    const { server, model, finished } = await open([running]);
    const stream = server.streams.get('x_1');
    stream?.tell('output', { index: 0, output: stdout('a') });
    await settle();
    expect(model.executions[0].outputs).toEqual([stdout('a')]);
    // An answer that is older than the stream must not take the output away.
    model.requestSync(true);
    await settle();
    expect(model.executions[0].outputs).toEqual([stdout('a')]);
    const done = execution({ seq: 1, cell: { outputs: [stdout('ab')] } });
    server.put(done);
    stream?.tell('finished', done);
    await settle();
    expect(finished).toEqual([1]);
    expect(model.executions[0].outputs).toEqual([stdout('ab')]);
  });

  it('leaves open what was seen to come when a list says that it has ended', async () => {
    const { server, model } = await open([
      execution({ seq: 1, status: 'running' })
    ]);
    server.streams
      .get('x_1')
      ?.tell('output', { index: 0, output: stdout('long') });
    await settle();
    const left_out = [{ index: 0, bytes: 9000, mimetypes: ['text/plain'] }];
    server.put(
      execution({ seq: 1, cell: { outputs: [stdout('')] }, left_out })
    );
    model.requestSync();
    await settle();
    expect(model.find('x_1')?.execution.status).toBe('ok');
    expect(model.find('x_1')?.outputs).toEqual([stdout('long')]);
    expect(model.find('x_1')?.execution.left_out).toEqual([]);
  });

  it('does not take a running snapshot over what has finished', async () => {
    const { server, model } = await open([execution({ seq: 1 })]);
    server.put(execution({ seq: 1, status: 'running' }));
    model.requestSync(true);
    await settle();
    expect(model.executions[0].execution.status).toBe('ok');
  });

  it('goes from one that runs to the next', async () => {
    const { emit, server } = await open([
      execution({ seq: 1, status: 'running' }),
      execution({ seq: 2, status: 'queued' })
    ]);
    const done = execution({ seq: 1 });
    server.put(done, execution({ seq: 2, status: 'running' }));
    server.streams.get('x_1')?.tell('finished', done);
    await settle();
    emit();
    await settle();
    expect([...server.streams.keys()]).toEqual(['x_1', 'x_2']);
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
    server.streams.get('x_1')?.tell('output', { index: 9, append: 'x' });
    await settle();
    expect(model.executions[0].outputs).toEqual([stdout('read')]);
    expect(server.calls.filter(call => call === 'follow x_1')).toHaveLength(1);
  });

  it('follows again when a server that was away is back', async () => {
    const { server, model } = await open([execution({ status: 'running' })]);
    server.failure = new Error('away');
    server.streams.get('x_1')?.break(true);
    await settle();
    expect(model.state.phase).toBe('error');
    server.failure = null;
    server.forget();
    model.requestSync();
    await settle();
    expect(server.calls).toContain('follow x_1');
  });

  it('does without the stream when it fails', async () => {
    const { emit, server } = await open([
      execution({ seq: 1, status: 'running' })
    ]);
    server.streams.get('x_1')?.tell('status', {
      status: 'running',
      execution_count: 7,
      started_at: null,
      waiting_for: null,
      input: null
    });
    server.streams.get('x_1')?.break(true);
    await settle();
    emit();
    await settle();
    expect(server.calls.filter(call => call === 'follow x_1')).toHaveLength(1);
  });

  it('leaves it to the browser to connect again, unless it does not get on', async () => {
    const { server } = await open([execution({ status: 'running' })]);
    const stream = server.streams.get('x_1')!;
    const change = { index: 0, output: stdout('a') };
    for (let n = 0; n < 20; n++) {
      stream.break();
      stream.tell('output', change);
    }
    await settle();
    expect(server.streams.get('x_1')).toBe(stream);
    expect(stream.readyState).not.toBe(2);
    for (let n = 0; n < 5; n++) {
      stream.break();
    }
    expect(stream.readyState).toBe(2);
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
    expect(server.streams.get('x_1')?.readyState).toBe(2);
    expect(cell.isDisposed).toBe(true);
    server.forget();
    model.requestSync(true);
    await settle();
    expect(server.calls).toEqual([]);
  });

  it('takes no answer that comes after it was disposed', async () => {
    const { server, model, seqs } = await open(numbered(PAGE + 9));
    const known = seqs();
    server.put(execution({ seq: PAGE + 10 }));
    const reading = model.readAll();
    model.requestSync(true);
    model.dispose();
    await reading;
    await settle();
    expect(seqs()).toEqual(known);
  });

  it('asks for cells without what is large in them', async () => {
    const { server, model } = await open(numbered(PAGE + 9));
    const asked = jest.spyOn(server, 'listExecutions');
    model.requestSync(true);
    await settle();
    expect(asked.mock.calls.length).toBeGreaterThan(1);
    expect(asked.mock.calls.every(([, range]) => range.brief)).toBe(true);
  });
});
