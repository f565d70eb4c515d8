import { ApiError } from '../../api/errors';
import { AgentsAtWork } from '../../model/atwork';
import { Incidents } from '../../model/incidents';
import type { IExecution, IJournalEvent } from '../../tokens';
import { execution, FakeServer, session, settle } from '../fakes';

const NOW = Date.parse('2026-01-02T03:04:05.000Z');

/** What the record says of who interrupted an execution. */
function interrupted(given: Partial<IJournalEvent> = {}): IJournalEvent {
  return {
    n: 7,
    type: 'interrupted',
    at: '2026-01-02T03:04:06.000Z',
    by: 'ada',
    by_kind: 'person',
    after_seq: 1,
    execution_id: 'x_1',
    text: 'asked',
    ...given
  };
}

/** A page that has just been opened, and a server where something ends. */
async function open(isWanted: (kind: Incidents.Kind) => boolean = () => true) {
  const server = new FakeServer();
  server.sessions = [session()];
  const atWork = new AgentsAtWork(server, server.events, () => false);
  const incidents = new Incidents(server, atWork, isWanted);
  const happened: string[] = [];
  incidents.happened.connect((_, { by, execution: { id }, kind }) =>
    happened.push(`${id} ${kind}${by ? ` by ${by}` : ''}`)
  );
  const end = async (given: Partial<IExecution>) => {
    const { id, status } = execution(given);
    server.put(execution(given));
    server.emit(1, { execution_id: id, status, length: 9 });
    await settle();
  };
  return { server, atWork, incidents, happened, end };
}

describe('Incidents', () => {
  beforeEach(() => jest.useFakeTimers({ now: NOW }));
  afterEach(() => jest.useRealTimers());

  it('tells once that a kernel died', async () => {
    const { server, happened, end } = await open();
    await end({ status: 'kernel_died' });
    server.forget();
    await end({ status: 'kernel_died' }); // as when it is reviewed
    expect(happened).toEqual(['x_1 died']);
    expect(server.calls).not.toContain('execution x_1');
  });

  it('tells once of all that died with a kernel', async () => {
    const { happened, end } = await open();
    const kernel = {
      id: 'k',
      name: 'python3',
      incarnation: 1,
      restarted: false,
      reason: null
    };
    await end({ status: 'kernel_died', kernel });
    await end({ seq: 2, status: 'kernel_died', kernel });
    const next = { ...kernel, incarnation: 2 };
    await end({ seq: 3, status: 'kernel_died', kernel: next });
    expect(happened).toEqual(['x_1 died', 'x_3 died']);
  });

  it('says nothing of what had happened before the page was opened', async () => {
    const { happened, end } = await open();
    const finished_at = '2026-01-02T03:03:00.000Z';
    await end({ status: 'kernel_died', finished_at });
    expect(happened).toEqual([]);
  });

  it('says nothing of what ended as expected', async () => {
    const { server, happened, end } = await open();
    await end({ status: 'ok' });
    await end({ status: 'timed_out' });
    expect(happened).toEqual([]);
    expect(server.calls).not.toContain('execution x_1');
  });

  it('tells who stopped an agent', async () => {
    const { server, happened, end } = await open();
    server.journal = [interrupted({ execution_id: 'x_0' }), interrupted()];
    await end({ status: 'interrupted' });
    server.journal = [
      interrupted({ execution_id: 'x_2', text: 'cancelled', by: 'bea' })
    ];
    await end({ seq: 2, status: 'interrupted' });
    expect(happened).toEqual(['x_1 stopped by ada', 'x_2 stopped by bea']);
  });

  it('tells that somebody interrupted the kernel by other means', async () => {
    const { happened, end } = await open();
    await end({ status: 'interrupted' });
    expect(happened).toEqual(['x_1 stopped']);
  });

  it.each([
    ['the agent itself', interrupted({ by: 'analyst' })],
    ['the end of its time', interrupted({ text: 'timed_out', by: null })],
    ['the end of the session', interrupted({ text: 'closing' })]
  ])('says nothing if it was %s', async (_, entry) => {
    const { server, happened, end } = await open();
    server.journal = [entry];
    await end({ status: 'interrupted' });
    expect(happened).toEqual([]);
  });

  it('says nothing of what this page has stopped', async () => {
    const { server, atWork, happened, end } = await open();
    server.put(execution({ status: 'running', finished_at: null }));
    server.emit(1, { execution_id: 'x_1', status: 'running' });
    void atWork.stop('s_1');
    await end({ status: 'interrupted' });
    expect(happened).toEqual([]);
  });

  it('asks nothing about what nobody wants to know', async () => {
    const { server, happened, end } = await open(kind => kind === 'died');
    await end({ status: 'interrupted' });
    await end({ seq: 2, status: 'kernel_died' });
    expect(happened).toEqual(['x_2 died']);
    expect(server.calls).not.toContain('execution x_1');
  });

  it('says nothing if the server cannot tell, or after its end', async () => {
    const { server, incidents, happened, end } = await open();
    server.failure = new ApiError('unreachable', 'gone');
    await end({ status: 'kernel_died' });
    server.failure = null;
    incidents.dispose();
    await end({ seq: 2, status: 'kernel_died' });
    expect(incidents.isDisposed).toBe(true);
    expect(happened).toEqual([]);
  });
});
