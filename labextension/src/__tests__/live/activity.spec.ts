import { ActivityModel, SESSIONS_PAGE } from '../../live/activity';
import { RECHECK_INTERVAL } from '../../live/listening';
import { execution, FakeServer, session, settle } from '../fakes';

function numbered(count: number) {
  // The newest first, as the server lists them.
  return Array.from({ length: count }, (_, index) =>
    session({ id: `s_${count - index}` })
  );
}

/** A model that looks at a server with these sessions, one of which a document shows. */
async function open(
  sessions = [session()],
  shown = 's_1',
  prepare: (server: FakeServer) => void = () => undefined
) {
  const server = new FakeServer();
  server.sessions = sessions;
  server.executions = [execution({ seq: 1 })];
  prepare(server);
  const model = new ActivityModel({ api: server, events: server.events });
  const document = model.open(shown);
  document.isActive = true;
  model.isActive = true;
  await settle();
  return { server, model, document };
}

describe('ActivityModel', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('lists the sessions, and has one model for each that is shown', async () => {
    const { document, model } = await open(numbered(3));
    expect(model.state.phase).toBe('ready');
    expect(model.sessions.map(({ id }) => id)).toEqual(['s_3', 's_2', 's_1']);
    expect(document.session?.id).toBe('s_1');
    expect(document.executions).toHaveLength(1);
    expect(model.open('s_1')).toBe(document);
    model.close('s_1');
    expect(document.isDisposed).toBe(true);
    expect(model.open('s_1')).not.toBe(document);
  });

  it('tells which document is in front, until it is closed', async () => {
    const { document, model } = await open();
    const chosen: (string | undefined)[] = [];
    model.selectedChanged.connect(({ selected }) => chosen.push(selected?.id));
    expect(model.selected).toBeNull();
    model.selected = document;
    model.selected = document;
    model.close('s_1');
    expect(model.selected).toBeNull();
    expect(chosen).toEqual(['s_1', undefined]);
  });

  it('looks again while a kernel is busy, as no event tells its end', async () => {
    const busy = { id: 'k', name: 'python3', incarnation: 1 };
    const kernel = { ...busy, execution_state: 'busy' as const };
    const { document, server } = await open([session({ kernel })]);
    server.sessions = [
      session({ kernel: { ...kernel, execution_state: 'idle' } })
    ];
    await settle(RECHECK_INTERVAL);
    expect(document.session?.kernel?.execution_state).toBe('idle');
    server.forget();
    await settle(RECHECK_INTERVAL);
    expect(server.calls).toEqual([]);
  });

  it('knows a session that is shown though it is not listed', async () => {
    const { document } = await open(numbered(SESSIONS_PAGE + 5));
    expect(document.session?.id).toBe('s_1');
    expect(document.state.phase).toBe('ready');
  });

  it('says that there is nothing, and lists the first session', async () => {
    const { server, model } = await open([]);
    expect(model.state.phase).toBe('ready');
    server.sessions = [session()];
    server.emit(1, { action: 'opened' });
    await settle();
    expect(model.sessions).toHaveLength(1);
  });

  it('loads earlier sessions once each, and keeps them', async () => {
    const { server, model } = await open(numbered(SESSIONS_PAGE + 5));
    expect(model.hasMore).toBe(true);
    await model.loadMore();
    expect(model.sessions).toHaveLength(SESSIONS_PAGE + 5);
    expect(model.hasMore).toBe(false);
    server.forget();
    await model.loadMore();
    expect(server.calls).toEqual([]);
    await model.refresh();
    expect(model.sessions).toHaveLength(SESSIONS_PAGE + 5);
    expect(model.hasMore).toBe(false);
  });

  it('knows a session that is shown better than an old page of the list', async () => {
    const { document, server, model } = await open(numbered(SESSIONS_PAGE + 5));
    await model.loadMore();
    server.sessions = server.sessions.map(each =>
      each.id === 's_1' ? session({ id: 's_1', title: 'Renamed' }) : each
    );
    await model.refresh();
    expect(document.session?.title).toBe('Renamed');
    expect(model.sessions[SESSIONS_PAGE + 4].title).toBe('Renamed');
  });

  it('follows events that come one after the other', async () => {
    const { server } = await open();
    server.emit(1);
    await settle();
    server.forget();
    server.emit(2);
    await settle();
    expect(server.calls).toContain('s_1 after 1');
    expect(server.calls).not.toContain('s_1 after 0');
    expect(server.calls).toContain('sessions after null');
  });

  it('reads all that is shown again after a gap', async () => {
    const { server } = await open();
    server.emit(1);
    await settle();
    server.forget();
    server.emit(3, { session_id: 's_other' });
    await settle();
    expect(server.calls).toContain('s_1 after 0');
  });

  it('reads all that is shown again when the server started anew', async () => {
    const { server } = await open();
    server.emit(5);
    await settle();
    server.forget();
    server.emit(1, { session_id: 's_other' });
    await settle();
    expect(server.calls).toContain('s_1 after 0');
  });

  it('leaves the cells alone when another session changes', async () => {
    const { server } = await open();
    server.emit(1);
    await settle();
    server.forget();
    server.emit(2, { session_id: 's_other' });
    await settle();
    expect(server.calls).toEqual(['sessions after null']);
  });

  it('ignores events of others, and all while nobody looks', async () => {
    const { server, model } = await open();
    model.close('s_1');
    server.forget();
    server.events.emit({ schema_id: 'other', serial: 1, session_id: 's_1' });
    model.isActive = false;
    server.emit(1);
    await settle(120_000);
    expect(server.calls).toEqual([]);
    model.isActive = true;
    await settle();
    expect(server.calls).toEqual(['sessions after null']);
  });

  it('finds what happened while events are cut off', async () => {
    const { document, server } = await open();
    server.sessions = [
      session({ chain: { head: 'g', length: 9, signature: null } })
    ];
    server.put(execution({ seq: 1, status: 'error' }));
    server.forget();
    await settle(60_000);
    expect(server.calls).toContain('s_1 after 0');
    expect(document.executions[0].execution.status).toBe('error');
  });

  it('does not read cells again when nothing happened', async () => {
    const { server } = await open();
    server.forget();
    await settle(60_000);
    expect(new Set(server.calls)).toEqual(new Set(['sessions after null']));
  });

  it('says what failed, and gets over it by itself', async () => {
    const { server, model } = await open([session()], 's_1', each => {
      each.failure = new Error('down');
    });
    expect(model.state).toMatchObject({ phase: 'error' });
    expect(model.sessions).toEqual([]);
    server.failure = null;
    await settle(120_000);
    expect(model.state.phase).toBe('ready');
  });

  it('reads the cells again that could not be read', async () => {
    const { document, server, model } = await open();
    server.failure = new Error('down');
    await model.refresh();
    await settle();
    expect(document.state).toMatchObject({ phase: 'error' });
    server.failure = null;
    await settle(120_000);
    expect(document.state.phase).toBe('ready');
  });

  it('shows that a session is not there any more', async () => {
    const { document, model } = await open(numbered(1), 's_gone', server => {
      server.listExecutions = async () => {
        throw new Error('There is no s_gone.');
      };
    });
    expect(model.state.phase).toBe('ready');
    expect(document.state).toMatchObject({ phase: 'error' });
  });

  it('lets go of everything when it is disposed', async () => {
    const { document, server, model } = await open();
    model.dispose();
    model.dispose();
    expect(model.isDisposed).toBe(true);
    expect(document.isDisposed).toBe(true);
    server.forget();
    server.emit(7);
    await settle(120_000);
    expect(server.calls).toEqual([]);
  });
});
