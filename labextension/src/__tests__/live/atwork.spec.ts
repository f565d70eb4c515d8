import { ApiError } from '../../api/errors';
import { AgentsAtWork, PATIENCE } from '../../live/atwork';
import { RECHECK_INTERVAL } from '../../live/listening';
import type { IAgentSession, IExecution, IStopped } from '../../tokens';
import { execution, FakeServer, session, settle, target } from '../fakes';

const BUSY = { id: 'k', name: 'python3', incarnation: 1 } as const;

/** A model that has looked at a server. */
async function open(
  sessions: IAgentSession[] = [session({ executions: 1 })],
  executions: IExecution[] = [],
  isPaused = () => false
) {
  const server = new FakeServer();
  server.sessions = sessions;
  server.executions = executions;
  const model = new AgentsAtWork(server, server.events, isPaused);
  model.refresh();
  // The first event is one after others that were missed.
  server.emit(1, { action: 'person' });
  await settle();
  server.forget();
  const atWork = () =>
    model.agents.map(
      each =>
        `${each.session.id}: ${each.pending.map(({ id, status }) => `${id} ${status}`).join(', ')}`
    );
  return { server, model, atWork };
}

/** Let the page be hidden, or be seen again. */
function hide(hidden: boolean): void {
  jest.spyOn(document, 'hidden', 'get').mockReturnValue(hidden);
}

describe('AgentsAtWork', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('asks nothing before it is told to, and nothing by itself', async () => {
    const server = new FakeServer();
    const model = new AgentsAtWork(server, server.events, () => false);
    await settle(100_000);
    expect(server.calls).toEqual([]);
    model.refresh();
    await settle(100_000);
    expect(server.calls).toEqual(['open sessions after null']);
    expect(model.agents).toEqual([]);
  });

  it('counts what events tell of, without asking the server', async () => {
    const { server, model, atWork } = await open();
    const changed = jest.fn();
    model.changed.connect(changed);
    server.emit(2, { execution_id: 'x_1', seq: 1, status: 'queued' });
    expect(atWork()).toEqual(['s_1: x_1 queued']);
    server.emit(3, { execution_id: 'x_1', seq: 1, status: 'running' });
    server.emit(4, { execution_id: 'x_2', status: 'awaiting_approval' });
    expect(atWork()).toEqual(['s_1: x_2 awaiting_approval, x_1 running']);
    expect(model.get('s_1')?.pending[0].seq).toBeNull();
    server.emit(5, { execution_id: 'x_1', status: 'ok' });
    server.emit(6, { execution_id: 'x_2', status: 'rejected' });
    expect(atWork()).toEqual([]);
    expect(model.get('s_1')).toBeNull();
    expect(changed).toHaveBeenCalledTimes(5);
    await settle();
    expect(server.calls).toEqual([]);
  });

  it('takes no notice of what changes nothing that is pending', async () => {
    const { server, model } = await open();
    const changed = jest.fn();
    model.changed.connect(changed);
    server.emit(2, { action: 'kernel' });
    server.emit(3, { execution_id: 'x_1' });
    server.emit(4, { execution_id: 'x_1', status: 'ok' });
    server.emit(5, { action: 'approvals', session_id: undefined });
    server.events.emit({ schema_id: 'of another' });
    await settle();
    expect(changed).not.toHaveBeenCalled();
    expect(server.calls).toEqual([]);
  });

  it('puts those that ask before those that run and those that wait', async () => {
    const { server, atWork } = await open(
      ['s_3', 's_2', 's_1'].map(id => session({ id }))
    );
    server.emit(2, { execution_id: 'a', status: 'queued' });
    server.emit(3, { execution_id: 'b', session_id: 's_2', status: 'running' });
    server.emit(4, {
      execution_id: 'c',
      session_id: 's_3',
      status: 'awaiting_approval'
    });
    expect(atWork()).toEqual([
      's_3: c awaiting_approval',
      's_2: b running',
      's_1: a queued'
    ]);
  });

  it('finds out what has ended though its last event was lost', async () => {
    const { server, model, atWork } = await open();
    server.executions = [execution({ id: 'x_1', status: 'ok' })];
    server.emit(2, { execution_id: 'x_1', seq: 1, status: 'running' });
    hide(true);
    await settle(10 * RECHECK_INTERVAL);
    expect(server.calls).toEqual([]);
    expect(atWork()).toEqual(['s_1: x_1 running']);
    hide(false);
    await settle(RECHECK_INTERVAL);
    expect(atWork()).toEqual([]);
    server.forget();
    await settle(10 * RECHECK_INTERVAL);
    expect(server.calls).toEqual([]);
    server.emit(3, { execution_id: 'x_2', status: 'running' });
    model.dispose();
    await settle(RECHECK_INTERVAL);
    expect(server.calls).toEqual([]);
  });

  it('finds what runs behind however many wait, and stops it', async () => {
    const queue = Array.from({ length: 35 }, (_, n) =>
      execution({
        id: `x_${n + 1}`,
        seq: n + 1,
        status: n < 5 ? 'ok' : n === 5 ? 'running' : 'queued',
        started_at: n < 6 ? '2026-07-01T10:00:00.000Z' : null
      })
    );
    const { model, server } = await open(
      [session({ asking: 1, executions: 35 })],
      queue
    );
    const [{ current, pending }] = model.agents;
    expect([current?.id, pending.length]).toEqual(['x_6', 30]);
    queue[5] = { ...queue[5], status: 'interrupted' };
    server.executions = queue;
    expect((await model.stop('s_1')).execution?.id).toBe('x_6');
  });

  it('looks once for a session that it does not know', async () => {
    const { server, atWork } = await open([]);
    server.sessions = [session({ id: 's_new' })];
    const event = { execution_id: 'x_1', session_id: 's_new' };
    server.emit(2, { ...event, status: 'queued' });
    server.emit(3, { ...event, status: 'running' });
    expect(atWork()).toEqual([]);
    await settle();
    expect(atWork()).toEqual(['s_new: x_1 running']);
    expect(new Set(server.calls)).toEqual(
      new Set(['open sessions after null'])
    );
    expect(server.calls.length).toBeLessThanOrEqual(2);
  });

  it('forgets what a session had when it is closed', async () => {
    const { server, atWork } = await open();
    server.emit(2, { execution_id: 'x_1', status: 'running' });
    server.emit(3, { action: 'closed', status: 'closed' });
    expect(atWork()).toEqual([]);
  });

  it.each([
    ['busy', session({ kernel: { ...BUSY, execution_state: 'busy' } }), false],
    ['asked for', session({ asking: 1 }), false],
    ['paused', session(), true]
  ])('finds at first what is %s', async (_, given, isPaused) => {
    const { atWork } = await open(
      [{ ...given, executions: 2 }],
      [execution(), execution({ seq: 2, status: 'queued' })],
      () => isPaused
    );
    expect(atWork()).toEqual(['s_1: x_2 queued']);
  });

  it('does not look into sessions that are idle, or that ran nothing', async () => {
    const server = new FakeServer();
    const kernel = { ...BUSY, execution_state: 'busy' } as const;
    server.sessions = [session({ executions: 3 }), session({ kernel })];
    const model = new AgentsAtWork(server, server.events, () => false);
    model.refresh();
    await settle();
    expect(server.calls).toEqual(['open sessions after null']);
  });

  it('lists all pages of sessions', async () => {
    const many = Array.from({ length: 101 }, (_, n) =>
      session({ id: `s_${n}` })
    );
    const { server, atWork } = await open(many);
    server.emit(2, {
      execution_id: 'x',
      session_id: 's_100',
      status: 'running'
    });
    expect(atWork()).toEqual(['s_100: x running']);
  });

  it('looks at all again when an event was missed', async () => {
    const { server, atWork } = await open();
    server.emit(2, { execution_id: 'x_1', status: 'running' });
    server.emit(4, { action: 'person' });
    await settle();
    expect(server.calls).toEqual(['open sessions after null']);
    expect(atWork()).toEqual([]);
  });

  it('keeps what it is told while it looks', async () => {
    const { server, model, atWork } = await open();
    model.refresh();
    server.emit(2, { execution_id: 'x_1', status: 'running' });
    await settle();
    expect(atWork()).toEqual(['s_1: x_1 running']);
  });

  it('fetches nothing while the page is hidden, and looks when it is seen', async () => {
    const { server, model, atWork } = await open([]);
    server.sessions = [session()];
    hide(true);
    server.emit(9, { execution_id: 'x_1', status: 'running' });
    model.refresh();
    await settle(100_000);
    expect(server.calls).toEqual([]);
    hide(false);
    server.sessions = [
      session({ executions: 1, kernel: { ...BUSY, execution_state: 'busy' } })
    ];
    server.executions = [execution({ status: 'running' })];
    model.refresh();
    await settle();
    expect(atWork()).toEqual(['s_1: x_1 running']);
  });

  it('does not say what it cannot know', async () => {
    const { server, model, atWork } = await open();
    server.emit(2, { execution_id: 'x_1', status: 'running' });
    server.failure = new ApiError('unreachable', 'gone');
    model.refresh();
    await settle();
    expect(atWork()).toEqual([]);
    expect(model.isReady).toBe(false);
    server.failure = null;
    model.refresh();
    await settle();
    expect(model.isReady).toBe(true);
  });

  it('hears nothing after it was disposed', async () => {
    const { server, model, atWork } = await open();
    model.dispose();
    model.dispose();
    server.emit(2, { execution_id: 'x_1', status: 'running' });
    model.refresh();
    await settle();
    expect(atWork()).toEqual([]);
    expect(server.calls).toEqual([]);
  });
});

const LIST = 'open sessions after null';

function inNotebook(given: Partial<IAgentSession> = {}) {
  return session({
    target: target('notebook'),
    path: 'a.ipynb',
    executions: 1,
    ...given
  });
}

function busy(given: Partial<IAgentSession> = {}) {
  const kernel = { id: 'k', name: 'python3', incarnation: 1 };
  return inNotebook({
    kernel: { ...kernel, execution_state: 'busy' },
    ...given
  });
}

/** A model that looks at a server with these sessions. */
async function openNotebook(
  sessions: IAgentSession[],
  executions: IExecution[] = []
) {
  const server = new FakeServer();
  server.sessions = sessions;
  server.executions = executions;
  const model = new AgentsAtWork(server, server.events, () => false);
  model.refresh();
  await settle();
  const doing = () =>
    model.at('a.ipynb', null).map(({ current }) => current?.status ?? null);
  return { server, model, doing };
}

describe('AgentsAtWork in notebooks', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('knows at first sight what asks before an idle kernel', async () => {
    const { model } = await openNotebook(
      [inNotebook({ asking: 1 })],
      [execution({ status: 'awaiting_approval' })]
    );
    expect(model.pending('x_1')?.status).toBe('awaiting_approval');
  });

  it('finds the agents at a path and in a kernel', async () => {
    const { model } = await openNotebook([
      inNotebook({ id: 's_3', path: 'b.ipynb', kernel: null }),
      session({ id: 's_2' }),
      inNotebook()
    ]);
    const at = (path: string, kernelId: string | null) =>
      model.at(path, kernelId).map(({ session: { id } }) => id);
    expect(at('a.ipynb', null)).toEqual(['s_1']);
    expect(at('b.ipynb', null)).toEqual(['s_3']);
    expect(at('b.ipynb', 'k')).toEqual(['s_1', 's_3']);
    expect(at('c.ipynb', 'other')).toEqual([]);
  });

  it('knows at first sight what runs', async () => {
    const running = execution({ seq: 2, status: 'running' });
    const { model, doing } = await openNotebook(
      [busy()],
      [execution({ seq: 1 }), running, execution({ seq: 3, status: 'queued' })]
    );
    expect(doing()).toEqual(['running']);
    expect(model.pending('x_2')).toBe(running);
    expect(model.pending('x_3')?.status).toBe('queued');
    expect(model.pending('x_1')).toBeNull();
  });

  it('follows what an agent does by events', async () => {
    const { server, model, doing } = await openNotebook([inNotebook()]);
    const changed = jest.fn();
    server.emit(1);
    await settle();
    model.changed.connect(changed);
    server.put(execution({ seq: 1, status: 'queued' }));
    server.forget();
    server.emit(2, { execution_id: 'x_1', status: 'queued' });
    await settle();
    expect(doing()).toEqual(['queued']);
    expect(server.calls).toEqual([LIST, 'execution x_1']);
    server.put(execution({ seq: 1, status: 'running' }));
    server.emit(3, { execution_id: 'x_1', status: 'running' });
    await settle();
    expect(doing()).toEqual(['running']);
    changed.mockClear();
    server.emit(4, { execution_id: 'x_1', status: 'ok' });
    expect(doing()).toEqual([null]);
    expect(changed).toHaveBeenCalledTimes(1);
  });

  it('does not take what has finished before it was read', async () => {
    const { server, doing } = await openNotebook(
      [inNotebook()],
      [execution({ seq: 1 })]
    );
    server.emit(1, { execution_id: 'x_1', status: 'running' });
    await settle();
    expect(doing()).toEqual([null]);
  });

  it('looks at sessions in notebooks when something was decided', async () => {
    const { server } = await openNotebook([inNotebook()]);
    server.emit(1);
    await settle();
    server.forget();
    server.emit(2, { action: 'approvals', session_id: undefined });
    await settle();
    expect(server.calls).toEqual([LIST]);
  });

  it('makes one look of many events', async () => {
    const { server } = await openNotebook([inNotebook()]);
    server.emit(1);
    await settle();
    server.forget();
    for (let serial = 2; serial < 50; serial++) {
      server.emit(serial);
    }
    await settle();
    expect(server.calls.length).toBeLessThanOrEqual(2);
  });

  it('knows what was approved and waits for its turn', async () => {
    const document = { status: 'proposed' } as IExecution['document'];
    const approval = { status: 'approved' } as IExecution['approval'];
    const waits = execution({ seq: 1, status: 'queued', document, approval });
    const asks = { ...waits, id: 'x_2', status: 'awaiting_approval' } as const;
    const { server, model } = await openNotebook([busy()], [waits, asks]);
    expect(model.approved.map(({ id }) => id)).toEqual(['x_1']);
    server.put(execution({ ...waits, status: 'running' }));
    server.emit(7);
    await settle();
    expect(model.approved).toEqual([]);
  });

  it('looks at everything again when an event was missed', async () => {
    const { server, doing } = await openNotebook(
      [busy()],
      [execution({ seq: 1, status: 'running' })]
    );
    expect(doing()).toEqual(['running']);
    server.put(execution({ seq: 1 }));
    server.emit(7);
    await settle();
    expect(doing()).toEqual([null]);
  });

  it('tells of sessions that open and close, though nothing runs there', async () => {
    const { server, model } = await open([session()]);
    const told = jest.fn();
    model.changed.connect(() => told(model.sessions.map(({ id }) => id)));
    server.emit(1, { action: 'closed' });
    expect(told).toHaveBeenLastCalledWith([]);
    server.emit(2, { action: 'opened' });
    await settle();
    expect(told).toHaveBeenLastCalledWith(['s_1']);
  });

  it('forgets a session that was closed, with what ran there', async () => {
    const { server, model } = await openNotebook(
      [busy()],
      [execution({ seq: 1, status: 'running' })]
    );
    server.sessions = [busy({ status: 'closed' })];
    server.emit(1, { action: 'closed' });
    await settle();
    expect(model.at('a.ipynb', null)).toEqual([]);
    expect(model.pending('x_1')).toBeNull();
  });

  it('names what runs before what waits', async () => {
    const { doing } = await openNotebook(
      [busy()],
      [
        execution({ seq: 1, status: 'queued' }),
        execution({ seq: 2, status: 'running' })
      ]
    );
    expect(doing()).toEqual(['running']);
  });

  it('looks again at what it could not read at first', async () => {
    const { server, model, doing } = await openNotebook([], []);
    server.emit(1);
    await settle();
    server.sessions = [busy()];
    server.executions = [execution({ seq: 1, status: 'running' })];
    const listing = jest.spyOn(server, 'listSessions');
    listing.mockRejectedValueOnce(new Error('down'));
    server.emit(2, { action: 'opened' });
    await settle();
    expect(model.at('a.ipynb', null)).toEqual([]);
    server.emit(3);
    await settle();
    expect(doing()).toEqual(['running']);
  });

  it('is silent once it is disposed', async () => {
    const { server, model } = await openNotebook([
      inNotebook({ executions: 0 })
    ]);
    const changed = jest.fn();
    model.changed.connect(changed);
    model.refresh();
    model.dispose();
    model.dispose();
    server.forget();
    server.emit(9);
    await settle();
    expect(server.calls).toEqual([]);
    expect(changed).not.toHaveBeenCalled();
  });
});

describe('stopping', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const running = execution({ status: 'running', finished_at: null });

  /** A model that stops what runs. */
  async function stop(given: Partial<IExecution> = {}) {
    const opened = await open([session()], [{ ...running, ...given }]);
    opened.server.emit(2, { execution_id: 'x_1', seq: 1, status: 'running' });
    const told: IStopped[] = [];
    const stopping = opened.model
      .stop('s_1')
      .then(stopped => told.push(stopped));
    await settle(1);
    return { ...opened, told, stopping };
  }

  it('is told when what ran has ended', async () => {
    const { server, told } = await stop();
    expect(server.calls).toEqual(['interrupt s_1', 'execution x_1']);
    server.emit(3, { execution_id: 'x_other', status: 'ok' });
    await settle(1);
    expect(told).toEqual([]);
    server.put(execution({ status: 'interrupted' }));
    server.emit(4, { execution_id: 'x_1', status: 'interrupted' });
    await settle(1);
    expect(told[0].execution?.status).toBe('interrupted');
    expect(told[0].session.id).toBe('s_1');
  });

  it('is told when the code ignores the interrupt', async () => {
    const { server, told } = await stop();
    server.put({ ...running, interrupt_ignored: true });
    server.emit(3, { execution_id: 'x_1', status: 'running' });
    await settle(1);
    expect(told[0].execution?.interrupt_ignored).toBe(true);
  });

  it('does not wait for ever', async () => {
    const { server, told } = await stop();
    await settle(PATIENCE - 10);
    expect(told).toEqual([]);
    await settle(20);
    expect(told[0].execution?.status).toBe('running');
    server.forget();
    server.emit(3, { execution_id: 'x_1', status: 'ok' });
    await settle(PATIENCE);
    expect(server.calls).toEqual([]);
  });

  it('looks again when the session is closed meanwhile', async () => {
    const { server, told } = await stop();
    server.put(execution({ status: 'interrupted' }));
    server.emit(3, { action: 'closed', status: 'closed' });
    await settle(1);
    expect(told).toHaveLength(1);
  });

  it('looks for what runs if no event has told of it', async () => {
    const { server, model } = await open(
      [session()],
      [running, execution({ seq: 2, status: 'queued' })]
    );
    void model.stop('s_1');
    await settle(1);
    expect(server.calls).toEqual([
      's_1 before the end',
      'interrupt s_1',
      'execution x_1'
    ]);
  });

  it('tells of the kernel also if nothing ran', async () => {
    const { model } = await open();
    const stopped = await model.stop('s_1');
    expect(stopped.execution).toBeNull();
    expect(stopped.session.kernel?.execution_state).toBe('idle');
  });

  it('fails as the server does', async () => {
    const { server, model } = await open();
    server.failure = new ApiError('refused', 'no', 409, 'session_closed');
    await expect(model.stop('s_1')).rejects.toThrow('no');
  });
});
