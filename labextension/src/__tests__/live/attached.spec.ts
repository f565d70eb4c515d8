import { AttachedSessions } from '../../live/attached';
import type { IAgentSession, IExecution } from '../../tokens';
import { execution, FakeServer, session, settle, target } from '../fakes';

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
async function open(
  sessions: IAgentSession[],
  executions: IExecution[] = [],
  active = true
) {
  const server = new FakeServer();
  server.sessions = sessions;
  server.executions = executions;
  const model = new AttachedSessions(server, server.events);
  model.isActive = active;
  await settle();
  const doing = () =>
    model.at('a.ipynb', null).map(({ current }) => current?.status ?? null);
  return { server, model, doing };
}

describe('AttachedSessions', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('asks for nothing while no notebook is open', async () => {
    const { server, model } = await open([inNotebook()], [], false);
    server.emit(1);
    model.refresh();
    await settle();
    expect(server.calls).toEqual([]);
    expect(model.isReady).toBe(false);
    model.isActive = true;
    await settle();
    expect(server.calls).toEqual([LIST, 's_1 before the end']);
    expect(model.isReady).toBe(true);
  });

  it('knows at first sight what asks before an idle kernel', async () => {
    const { model } = await open(
      [inNotebook()],
      [execution({ status: 'awaiting_approval' })]
    );
    expect(model.pending('x_1')?.status).toBe('awaiting_approval');
  });

  it('finds the agents at a path and in a kernel', async () => {
    const { model } = await open([
      inNotebook({ id: 's_3', path: 'b.ipynb', kernel: null }),
      session({ id: 's_2' }),
      inNotebook()
    ]);
    const at = (path: string, kernelId: string | null) =>
      model.at(path, kernelId).map(({ session: { id } }) => id);
    expect(model.sessions).toHaveLength(2);
    expect(at('a.ipynb', null)).toEqual(['s_1']);
    expect(at('b.ipynb', null)).toEqual(['s_3']);
    expect(at('b.ipynb', 'k')).toEqual(['s_1', 's_3']);
    expect(at('c.ipynb', 'other')).toEqual([]);
  });

  it('reads all pages of open sessions', async () => {
    const many = Array.from({ length: 150 }, (_, index) =>
      inNotebook({ id: `s_${index}`, kernel: null })
    );
    const { model } = await open([...many, inNotebook({ status: 'closed' })]);
    expect(model.sessions).toHaveLength(150);
  });

  it('knows at first sight what runs', async () => {
    const running = execution({ seq: 2, status: 'running' });
    const { model, doing } = await open(
      [busy()],
      [execution({ seq: 1 }), running, execution({ seq: 3, status: 'queued' })]
    );
    expect(doing()).toEqual(['running']);
    expect(model.pending('x_2')).toBe(running);
    expect(model.pending('x_3')?.status).toBe('queued');
    expect(model.pending('x_1')).toBeNull();
  });

  it('follows what an agent does by events', async () => {
    const { server, model, doing } = await open([inNotebook()]);
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
    const { server, doing } = await open(
      [inNotebook()],
      [execution({ seq: 1 })]
    );
    server.emit(1, { execution_id: 'x_1', status: 'running' });
    await settle();
    expect(doing()).toEqual([null]);
  });

  it('makes one look of many events', async () => {
    const { server } = await open([inNotebook()]);
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
    const { server, model } = await open([busy()], [waits, asks]);
    expect(model.approved.map(({ id }) => id)).toEqual(['x_1']);
    server.put(execution({ ...waits, status: 'running' }));
    server.emit(7);
    await settle();
    expect(model.approved).toEqual([]);
  });

  it('does not care what happens in scratch kernels', async () => {
    const { server } = await open([session()]);
    server.emit(1);
    await settle();
    server.forget();
    server.emit(2, { execution_id: 'x_1', status: 'running' });
    server.emit(3, { action: 'closed' });
    await settle();
    expect(server.calls).toEqual([]);
  });

  it('looks at everything again when an event was missed', async () => {
    const { server, doing } = await open(
      [busy()],
      [execution({ seq: 1, status: 'running' })]
    );
    expect(doing()).toEqual(['running']);
    server.put(execution({ seq: 1 }));
    server.emit(7);
    await settle();
    expect(doing()).toEqual([null]);
  });

  it('forgets a session that was closed, with what ran there', async () => {
    const { server, model } = await open(
      [busy()],
      [execution({ seq: 1, status: 'running' })]
    );
    server.sessions = [busy({ status: 'closed' })];
    server.emit(1, { action: 'closed' });
    await settle();
    expect(model.sessions).toEqual([]);
    expect(model.pending('x_1')).toBeNull();
  });

  it('keeps what it has while the server cannot be reached', async () => {
    const { server, doing } = await open(
      [busy()],
      [execution({ seq: 1, status: 'running' })]
    );
    server.failure = new Error('down');
    server.emit(1);
    await settle();
    expect(doing()).toEqual(['running']);
    server.failure = null;
    server.put(execution({ seq: 1 }));
    server.emit(2);
    await settle();
    expect(doing()).toEqual([null]);
  });

  it('looks no further where there is nothing to find', async () => {
    const { server, model } = await open([busy({ executions: 0 })]);
    expect(server.calls).toEqual([LIST]);
    server.emit(1);
    await settle();
    server.forget();
    model.isActive = true;
    await settle();
    expect(server.calls).toEqual([]);
    server.sessions = [];
    server.emit(2, { execution_id: 'x_1', status: 'running' });
    await settle();
    expect(server.calls).toEqual([LIST]);
  });

  it('names what runs before what waits', async () => {
    const { doing } = await open(
      [busy()],
      [
        execution({ seq: 1, status: 'queued' }),
        execution({ seq: 2, status: 'running' })
      ]
    );
    expect(doing()).toEqual(['running']);
  });

  it('looks again at what it could not read at first', async () => {
    const { server, model, doing } = await open([], []);
    server.emit(1);
    await settle();
    server.sessions = [busy()];
    server.executions = [execution({ seq: 1, status: 'running' })];
    const listing = jest.spyOn(server, 'listExecutions');
    listing.mockRejectedValueOnce(new Error('down'));
    server.emit(2);
    await settle();
    expect(model.sessions).toEqual([]);
    server.emit(3);
    await settle();
    expect(doing()).toEqual(['running']);
  });

  it('is silent once it is disposed', async () => {
    const { server, model } = await open([inNotebook({ executions: 0 })]);
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

  it('ignores events of others', async () => {
    const { server } = await open([inNotebook()]);
    server.forget();
    server.events.emit({ schema_id: 'other' });
    await settle();
    expect(server.calls).toEqual([]);
  });
});
