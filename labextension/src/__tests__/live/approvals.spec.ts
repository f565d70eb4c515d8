import { Signal } from '@lumino/signaling';
import { ApiError } from '../../api/errors';
import { ApprovalsModel } from '../../live/approvals';
import type { IExecution } from '../../tokens';
import { execution, FakeServer, session, settle } from '../fakes';

function asking(given: Partial<IExecution> = {}): IExecution {
  return execution({ status: 'awaiting_approval', ...given });
}

/** A model that has looked at a server where these ask. */
async function open(executions: IExecution[] = []) {
  const server = new FakeServer();
  const lost = new Signal<object, Error>({});
  ask(server, executions);
  const model = new ApprovalsModel(server, server.events, lost);
  const asked: string[] = [];
  model.asked.connect((_, { id }) => asked.push(id));
  const changed = jest.fn();
  model.changed.connect(changed);
  model.refresh();
  // The first event is one after others that were missed.
  server.emit(1);
  await settle();
  server.forget();
  changed.mockClear();
  const ids = () => model.asking.map(({ id }) => id);
  return { server, lost, model, asked, changed, ids };
}

function ask(server: FakeServer, executions: IExecution[]): void {
  server.executions = executions;
  server.approvals = { ...server.approvals, executions };
}

describe('ApprovalsModel', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('looks only when it is told to', async () => {
    const server = new FakeServer();
    const model = new ApprovalsModel(server, server.events, new Signal({}));
    await settle(100_000);
    expect(server.calls).toEqual([]);
    expect(model.policy).toBeNull();
    model.refresh();
    await settle(100_000);
    expect(server.calls).toEqual(['approvals']);
    expect(model.policy?.notebook).toBe('first');
    expect(model.paused).toBeNull();
  });

  it('tells once of each that asks', async () => {
    const { server, model, asked, ids } = await open([asking()]);
    expect(asked).toEqual(['x_1']);
    ask(server, [asking(), asking({ seq: 2 })]);
    server.emit(2, { execution_id: 'x_2', status: 'awaiting_approval' });
    await settle();
    expect(asked).toEqual(['x_1', 'x_2']);
    expect(ids()).toEqual(['x_1', 'x_2']);
    expect(model.get('x_2')?.seq).toBe(2);
    expect(model.get('x_3')).toBeNull();
  });

  it('looks again when an event is about what waits, and at no other', async () => {
    const { model, server } = await open();
    server.emit(2, { execution_id: 'x_9', status: 'running' });
    server.emit(3, { action: 'kernel' });
    server.events.emit({ schema_id: 'other' });
    await settle();
    expect(server.calls).toEqual([]);
    server.emit(4, { action: 'approvals', session_id: undefined });
    await settle();
    expect(server.calls).toEqual(['approvals']);
    const proposing = [session({ proposed: 2 })];
    server.approvals = { ...server.approvals, proposing };
    server.emit(5, { action: 'proposals' });
    await settle();
    expect(server.calls).toEqual(['approvals', 'approvals']);
    expect(model.proposing).toEqual(proposing);
    server.emit(6, { action: 'notebook' }); // it was moved
    await settle();
    expect(server.calls).toHaveLength(3);
  });

  it('keeps the copies of the record that fail', async () => {
    const sink = {
      name: 'audit',
      lag: 9,
      max_lag: null,
      is_stopping_code: false,
      entries_behind: 3,
      error: 'gone',
      failing_since: '2026-01-02T03:04:05.000Z'
    };
    const { model, server } = await open();
    expect(model.sinks).toEqual([]);
    server.approvals.sinks = [sink];
    server.emit(2, { action: 'approvals', session_id: undefined });
    await settle();
    expect(model.sinks).toEqual([sink]);
  });

  it('keeps why the record is not signed any more', async () => {
    const broken = { name: 'b_1', found: ['ledger-1 is gone.'], at: '' };
    const { model, server } = await open();
    server.approvals.broken = broken;
    server.emit(2, { action: 'approvals', session_id: undefined });
    await settle();
    expect(model.broken).toEqual(broken);
  });

  it('looks again when an event was missed', async () => {
    const { server } = await open();
    server.emit(7, { action: 'kernel' });
    await settle();
    expect(server.calls).toEqual(['approvals']);
  });

  it('lets go of what was decided elsewhere at once', async () => {
    const { server, changed, ids } = await open([asking()]);
    server.emit(2, { execution_id: 'x_1', status: 'queued' });
    expect(ids()).toEqual([]);
    expect(changed).toHaveBeenCalledTimes(1);
    expect(server.calls).toEqual([]);
  });

  it('does not take back what an earlier look saw', async () => {
    const { server, model, asked, ids } = await open([asking()]);
    await model.approve(asking());
    expect(ids()).toEqual([]);
    // The server has not said yet that it asks no more.
    server.emit(2, { action: 'approvals' });
    await settle();
    expect(ids()).toEqual([]);
    expect(asked).toEqual(['x_1']);
    // Its kernel is another now, so it asks anew.
    server.emit(3, {
      execution_id: 'x_1',
      status: 'awaiting_approval'
    });
    await settle();
    expect(ids()).toEqual(['x_1']);
    expect(asked).toEqual(['x_1', 'x_1']);
  });

  it('forgets what was decided when the server does', async () => {
    const { server, model, ids } = await open([asking()]);
    await model.reject(asking(), 'no');
    ask(server, []);
    server.emit(2, { action: 'approvals' });
    await settle();
    ask(server, [asking()]);
    server.emit(3, { action: 'approvals' });
    await settle();
    expect(ids()).toEqual(['x_1']);
  });

  it('binds a decision to what was shown', async () => {
    const { server, model } = await open([asking()]);
    const shown = asking({ source_sha256: 'seen' });
    await model.approve(shown);
    await model.approve(shown, 'x = 2');
    await model.reject(shown, null);
    expect(server.calls).toEqual([
      'approve x_1 seen',
      'approve x_1 seen as x = 2',
      'reject x_1: null'
    ]);
  });

  it('sees what is asked now before it says that a decision was refused', async () => {
    const { server, model, ids } = await open([asking()]);
    const error = new ApiError('refused', 'changed', 409, 'approval_changed');
    jest.spyOn(server, 'approve').mockRejectedValueOnce(error);
    ask(server, [asking({ source_sha256: 'other' })]);
    await expect(model.approve(asking())).rejects.toBe(error);
    expect(model.get('x_1')?.source_sha256).toBe('other');
    expect(ids()).toEqual(['x_1']);
  });

  it('keeps what asks when a decision does not arrive', async () => {
    const { server, model, ids } = await open([asking()]);
    server.failure = new ApiError('unreachable', 'away');
    await expect(model.reject(asking(), null)).rejects.toThrow('away');
    expect(ids()).toEqual(['x_1']);
    expect(server.calls).toEqual(['reject x_1: null']);
  });

  it('withdraws a grant, pauses and sets the policy', async () => {
    const { server, model } = await open();
    server.sessions = [session()];
    await model.withdraw('s_1');
    await model.setPaused(true);
    expect(model.paused?.by).toBe('ada');
    await model.setPaused(false);
    expect(model.paused).toBeNull();
    await model.setPolicy({ scratch: 'always' });
    expect(model.policy?.scratch).toBe('always');
    expect(server.calls).toEqual([
      'withdraw s_1',
      'pause',
      'resume',
      'policy {"scratch":"always"}'
    ]);
  });

  it('tries a server that is away again, ever more rarely', async () => {
    const { server, lost, model } = await open();
    const reconnected = jest.fn();
    model.reconnected.connect(reconnected);
    server.failure = new ApiError('unreachable', 'away');
    lost.emit(new Error());
    await settle(10 * 60_000);
    expect(server.calls.length).toBeGreaterThan(8);
    expect(server.calls.length).toBeLessThan(18);
    expect(reconnected).not.toHaveBeenCalled();
    server.failure = null;
    ask(server, [asking()]);
    server.forget();
    await settle(10 * 60_000);
    // Once more when events must be back, too; then now and then.
    expect(server.calls.length).toBeGreaterThan(2);
    expect(reconnected).toHaveBeenCalledTimes(2);
    expect(model.asking).toHaveLength(1);
    model.refresh();
    await settle();
    expect(reconnected).toHaveBeenCalledTimes(2);
  });

  it('reads again, and tells others, after a connection was lost', async () => {
    const { server, model } = await open();
    const reconnected = jest.fn();
    model.reconnected.connect(reconnected);
    ask(server, [asking()]);
    model.recover();
    await settle();
    expect(model.asking).toHaveLength(1);
    expect(reconnected).toHaveBeenCalledTimes(1);
  });

  it('does not try again what was refused', async () => {
    const { server, model } = await open();
    server.failure = new ApiError('extension_missing', 'none', 404);
    model.refresh();
    await settle(10 * 60_000);
    expect(server.calls).toEqual(['approvals']);
  });

  it('does not try again while nobody looks at the page', async () => {
    const { server, model } = await open();
    server.failure = new ApiError('unreachable', 'away');
    const hidden = jest.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    model.refresh();
    await settle(10 * 60_000);
    expect(server.calls).toEqual(['approvals']);
    hidden.mockRestore();
  });

  it('is silent once it is disposed', async () => {
    const { server, lost, model, changed } = await open([asking()]);
    server.failure = new ApiError('unreachable', 'away');
    model.refresh();
    model.dispose();
    model.dispose();
    server.emit(2, { action: 'approvals' });
    lost.emit(new Error());
    server.failure = null;
    await model.setPaused(true);
    await model.approve(asking());
    await settle(100_000);
    expect(model.isDisposed).toBe(true);
    expect(changed).not.toHaveBeenCalled();
    expect(server.calls).toEqual(['approvals', 'pause', 'approve x_1 sha-1']);
  });
});
