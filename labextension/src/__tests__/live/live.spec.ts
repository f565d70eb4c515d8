import { ApiError } from '../../api/errors';
import {
  EVENTS_BACK,
  LiveModel,
  PATIENCE,
  RECHECK_INTERVAL,
  SESSIONS_PAGE
} from '../../live/live';
import type { IAgentSession, IExecution, IStopped } from '../../tokens';
import { execution, FakeServer, session, settle, target } from '../fakes';

const AWAY = new ApiError('unreachable', 'away');

function asking(given: Partial<IExecution> = {}): IExecution {
  return execution({ status: 'awaiting_approval', ...given });
}

function inNotebook(given: Partial<IAgentSession> = {}): IAgentSession {
  return session({ target: target('notebook'), path: 'a.ipynb', ...given });
}

/** Sessions with numbers, the newest first, as the server lists them. */
function numbered(count: number, status: IAgentSession['status']) {
  return Array.from({ length: count }, (_, n) =>
    session({ id: `s_${count - n}`, status })
  );
}

function hide(hidden: boolean): void {
  jest.spyOn(document, 'hidden', 'get').mockReturnValue(hidden);
}

/** A model that has looked at a server. */
async function open(
  executions: IExecution[] = [],
  sessions: IAgentSession[] = [session()]
) {
  const server = new FakeServer();
  server.sessions = sessions;
  const live = new LiveModel(server, server.events);
  const put = (...given: IExecution[]) => {
    server.executions = given;
    const asks = given.filter(({ status }) => status === 'awaiting_approval');
    server.approvals = { ...server.approvals, executions: asks };
  };
  put(...executions);
  // The first event is one after others that were missed.
  let serial = 1;
  server.emit(serial, { action: 'kernel' });
  await settle();
  const missed = jest.fn();
  live.missed.connect(missed);
  server.forget();
  const emit = (given = {}) => server.emit(++serial, given);
  const atWork = () =>
    live.agents.map(
      ({ pending, session: { id } }) =>
        `${id}: ${pending.map(each => `${each.id} ${each.status}`).join(', ')}`
    );
  return { atWork, emit, live, missed, put, server };
}

describe('LiveModel', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('looks only when it is told to while nothing goes on', async () => {
    const server = new FakeServer();
    const live = new LiveModel(server, server.events);
    await settle(100_000);
    expect(server.calls).toEqual([]);
    expect([live.now, live.isReady]).toEqual([null, false]);
    await live.refresh();
    await settle(100_000);
    expect(server.calls).toEqual(['approvals']);
    expect(live.isReady).toBe(true);
  });

  it('makes one look of many events, and tells each at once', async () => {
    const { emit, live, server } = await open();
    const heard = jest.fn();
    live.heard.connect(heard);
    for (let n = 0; n < 50; n++) {
      emit({ execution_id: 'x_1', status: 'running' });
    }
    expect(heard).toHaveBeenCalledTimes(50);
    await settle(2500);
    expect(server.calls).toEqual(['approvals', 'approvals']);
  });

  it.each([
    ['a question', { execution_id: 'x_2', status: 'awaiting_approval' }],
    ['what became of one', { execution_id: 'x_1', status: 'queued' }],
    ['a decision', { action: 'approvals', session_id: undefined }],
    ['a session', { action: 'opened' }]
  ])('does not rest before it reads %s', async (_, event) => {
    const { emit, server } = await open([asking()]);
    emit({ action: 'kernel' });
    await settle(1);
    emit(event);
    await settle(1);
    expect(server.calls).toEqual(['approvals', 'approvals']);
  });

  it('puts those that ask before those that run and those that wait', async () => {
    const { atWork, live } = await open(
      [
        execution({ id: 'a', status: 'queued' }),
        execution({ id: 'd', status: 'queued', session_id: 's_2' }),
        execution({ id: 'b', status: 'running', session_id: 's_2' }),
        asking({ id: 'c', session_id: 's_3' })
      ],
      numbered(4, 'open')
    );
    expect(atWork()).toEqual([
      's_3: c awaiting_approval',
      's_2: b running, d queued',
      's_1: a queued'
    ]);
    expect(live.get('s_2')?.current?.id).toBe('b');
    expect(live.get('s_4')).toMatchObject({ pending: [], current: null });
    expect(live.get('s_5')).toBeNull();
    expect(live.pending('c')?.status).toBe('awaiting_approval');
    expect(live.pending('a')?.status).toBe('queued');
    expect(live.pending('x')).toBeNull();
  });

  it('finds the agents at a path and in a kernel', async () => {
    const { live } = await open(
      [],
      [
        inNotebook({ id: 's_3', path: 'b.ipynb', kernel: null }),
        session({ id: 's_2' }),
        inNotebook()
      ]
    );
    const at = (path: string, kernelId: string | null) =>
      live.at(path, kernelId).map(({ session: { id } }) => id);
    expect(at('a.ipynb', null)).toEqual(['s_1']);
    expect(at('b.ipynb', null)).toEqual(['s_3']);
    expect(at('b.ipynb', 'k')).toEqual(['s_1', 's_3']);
    expect(at('c.ipynb', 'other')).toEqual([]);
  });

  it('finds out what has ended though its last event was lost', async () => {
    const { atWork, live, put, server } = await open([
      execution({ status: 'running' })
    ]);
    put();
    hide(true);
    await settle(10 * RECHECK_INTERVAL);
    expect(server.calls).toEqual([]);
    expect(atWork()).toEqual(['s_1: x_1 running']);
    hide(false);
    await live.refresh(); // as the page does when it is shown
    expect(atWork()).toEqual([]);
    put(execution({ status: 'running' }));
    await live.refresh();
    put();
    await settle(RECHECK_INTERVAL);
    expect(atWork()).toEqual([]);
    server.forget();
    await settle(10 * RECHECK_INTERVAL);
    expect(server.calls).toEqual([]);
  });

  it('fetches nothing because of events while the page is hidden', async () => {
    const { emit, server } = await open();
    hide(true);
    emit({ execution_id: 'x_1', status: 'awaiting_approval' });
    await settle(100_000);
    expect(server.calls).toEqual([]);
  });

  it('has all read again when an event was missed', async () => {
    const { emit, missed, server } = await open();
    emit();
    expect(missed).not.toHaveBeenCalled();
    server.emit(7, { action: 'kernel' });
    expect(missed).toHaveBeenCalledTimes(1);
  });

  it('tries a server that is away again, ever more rarely, and tells that it is back', async () => {
    const { live, missed, server } = await open([
      execution({ status: 'running' })
    ]);
    server.failure = AWAY;
    void live.refresh();
    await settle(10 * 60_000);
    expect(server.calls.length).toBeGreaterThan(8);
    expect(server.calls.length).toBeLessThan(18);
    // What it cannot know it does not say.
    expect([live.agents, live.isReady, live.error]).toEqual([[], false, AWAY]);
    expect(live.sessions).toHaveLength(1);
    expect(missed).not.toHaveBeenCalled();
    server.failure = null;
    await settle(60_000);
    expect(live.agents).toHaveLength(1);
    // Once more when events must be back, too.
    await settle(EVENTS_BACK);
    expect(missed).toHaveBeenCalledTimes(2);
    await live.refresh();
    expect(missed).toHaveBeenCalledTimes(2);
    await live.recover();
    expect(missed).toHaveBeenCalledTimes(3);
  });

  it('does not try again what was refused', async () => {
    const { live, server } = await open();
    server.failure = new ApiError('extension_missing', 'none', 404);
    await live.refresh();
    await settle(10 * 60_000);
    expect(server.calls).toEqual(['approvals']);
  });

  it('looks now and then while it is shown, and while a kernel is busy', async () => {
    const busy = { ...session().kernel!, execution_state: 'busy' as const };
    const { live, server } = await open([], [session({ kernel: busy })]);
    await settle(100_000);
    expect(server.calls).toEqual([]);
    live.selected = 's_1';
    await settle(2 * RECHECK_INTERVAL);
    expect(server.calls).toHaveLength(3);
    server.sessions = [session()];
    await settle(RECHECK_INTERVAL);
    server.forget();
    await settle(60_000);
    expect(server.calls).toHaveLength(2);
    live.selected = null;
    await settle(60_000);
    server.forget();
    await settle(100_000);
    expect(server.calls).toEqual([]);
  });

  it('lists closed sessions only to those who see the panel', async () => {
    const many = numbered(SESSIONS_PAGE + 5, 'closed');
    const { emit, live, missed, server } = await open([], many);
    expect(live.closed).toEqual([]);
    live.isActive = true;
    await settle();
    expect(live.closed).toHaveLength(SESSIONS_PAGE);
    expect(live.hasMoreClosed).toBe(true);
    await live.loadMore();
    expect(live.closed).toHaveLength(SESSIONS_PAGE + 5);
    expect(live.hasMoreClosed).toBe(false);
    server.forget();
    emit({ action: 'approvals', session_id: undefined });
    await settle();
    expect(server.calls).toEqual(['approvals']);
    server.sessions = [session({ id: 's_new', status: 'closed' }), ...many];
    emit({ action: 'closed', session_id: 's_new' });
    await settle();
    expect(live.closed[0].id).toBe('s_new');
    // One of them was reviewed.
    server.forget();
    emit({ execution_id: 'x_1', status: 'ok', session_id: 's_2' });
    await settle();
    expect(server.calls).toContain('closed sessions after null');
    live.isActive = false;
    server.forget();
    emit({ action: 'closed', session_id: 's_3' });
    await settle();
    expect(server.calls).toEqual(['approvals']);
    expect(missed).not.toHaveBeenCalled();
  });

  it('reads the closed sessions again that could not be read', async () => {
    const { live, server } = await open([], numbered(2, 'closed'));
    server.failure = AWAY;
    live.isActive = true;
    await settle();
    expect(live.error).toBe(AWAY);
    server.failure = null;
    await settle(10_000);
    expect(live.closed).toHaveLength(2);
  });

  it('knows what is now when something was decided or refused', async () => {
    const { live, put } = await open([asking()]);
    put();
    await live.settle(Promise.resolve());
    expect(live.asking).toEqual([]);
    put(asking({ source_sha256: 'other' }));
    const error = new ApiError('refused', 'changed', 409, 'approval_changed');
    await expect(live.settle(Promise.reject(error))).rejects.toBe(error);
    expect(live.asking[0].source_sha256).toBe('other');
  });

  it('keeps what the user makes of a source', async () => {
    const { live } = await open();
    const edited = jest.fn();
    live.edited.connect(edited);
    live.setDraft(asking(), 'x = 2');
    expect(live.draftOf(asking())).toBe('x = 2');
    expect(live.draftOf(asking({ source_sha256: 'other' }))).toBeUndefined();
    live.setDraft(asking());
    expect(live.draftOf(asking())).toBeUndefined();
    expect(edited).toHaveBeenCalledTimes(2);
  });

  it('is silent once it is disposed', async () => {
    const { emit, live, server } = await open([asking()]);
    const changed = jest.fn();
    live.changed.connect(changed);
    emit({ action: 'kernel' });
    live.dispose();
    live.dispose();
    server.forget();
    emit({ action: 'opened' });
    await live.settle(Promise.resolve());
    await settle(100_000);
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
    const opened = await open([{ ...running, ...given }]);
    const told: IStopped[] = [];
    void opened.live.stop('s_1').then(stopped => told.push(stopped));
    await settle(1);
    return { ...opened, told };
  }

  it('is told when what ran has ended', async () => {
    const { emit, put, server, told } = await stop();
    expect(server.calls).toEqual(['approvals', 'interrupt s_1', 'approvals']);
    put(execution({ status: 'interrupted' }));
    emit({ execution_id: 'x_1', status: 'interrupted' });
    await settle();
    expect(told[0].execution?.status).toBe('interrupted');
    expect(told[0].session.id).toBe('s_1');
  });

  it('is told when the code ignores the interrupt', async () => {
    const { emit, put, told } = await stop();
    put({ ...running, interrupt_ignored: true });
    emit({ execution_id: 'x_1', status: 'running' });
    await settle();
    expect(told[0].execution?.interrupt_ignored).toBe(true);
  });

  it('does not wait for ever', async () => {
    const { told } = await stop();
    await settle(PATIENCE - 10);
    expect(told).toEqual([]);
    await settle(20);
    expect(told[0].execution?.status).toBe('running');
  });

  it('tells of the kernel also if nothing ran', async () => {
    const { told } = await stop({ status: 'queued' });
    expect(told[0].execution).toBeNull();
    expect(told[0].session.kernel?.execution_state).toBe('idle');
  });

  it('fails as the server does', async () => {
    const { live, server } = await open();
    server.failure = new ApiError('refused', 'no', 409, 'session_closed');
    await expect(live.stop('s_1')).rejects.toThrow('no');
  });
});
