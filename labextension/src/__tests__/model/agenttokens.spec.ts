import { ApiError } from '../../api/errors';
import { AgentTokens, standing } from '../../model/agenttokens';
import { FakeServer, settle, token } from '../fakes';

/** A list that has looked at a server with these tokens. */
async function open(...tokens: ReturnType<typeof token>[]) {
  const server = new FakeServer();
  server.tokens = tokens;
  const list = new AgentTokens(server, server.events);
  list.refresh();
  await settle();
  server.forget();
  const statuses = () => list.tokens.map(({ status }) => status);
  return { server, list, statuses };
}

describe('AgentTokens', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('looks when it is told to, and when anything happened', async () => {
    const server = new FakeServer();
    const list = new AgentTokens(server, server.events);
    await settle(100_000);
    expect(server.calls).toEqual([]);
    expect(list.state.phase).toBe('loading');
    list.refresh();
    await settle();
    expect(list.state.phase).toBe('ready');
    expect(list.tokens).toEqual([]);
    server.tokens = [token()];
    server.emit(1, { action: 'tokens', session_id: undefined });
    await settle();
    expect(list.tokens.map(({ id }) => id)).toEqual(['t_1']);
    server.forget();
    server.emit(2, { action: 'execution' });
    await settle();
    expect(server.calls).toEqual(['tokens']);
  });

  it('revokes, and looks again', async () => {
    const { list, server, statuses } = await open(
      token(),
      token({ id: 't_2' })
    );
    await list.revoke('t_1');
    expect(statuses()).toEqual(['revoked', 'active']);
    await settle();
    expect(server.calls).toEqual(['revoke t_1', 'tokens']);
    expect(statuses()).toEqual(['revoked', 'active']);
  });

  it('says that it cannot revoke, and keeps what it has', async () => {
    const { list, server, statuses } = await open(token());
    server.failure = new ApiError('unreachable', 'gone');
    await expect(list.revoke('t_1')).rejects.toThrow('gone');
    expect(statuses()).toEqual(['active']);
    list.refresh();
    await settle();
    expect(list.state).toEqual({ phase: 'error', error: server.failure });
    expect(statuses()).toEqual(['active']);
    server.failure = null;
    list.refresh();
    await settle();
    expect(list.state.phase).toBe('ready');
  });

  it('is quiet once it is disposed', async () => {
    const { list, server } = await open(token());
    const changed = jest.fn();
    list.changed.connect(changed);
    list.refresh();
    list.dispose();
    list.dispose();
    server.emit(1, { action: 'tokens' });
    await settle();
    expect(list.isDisposed).toBe(true);
    expect(changed).not.toHaveBeenCalled();
    expect(server.calls).toEqual(['tokens']);
  });

  it('tells the time of the server', () => {
    jest.setSystemTime(5000);
    const server = Object.assign(new FakeServer(), { clockOffset: 2000 });
    expect(new AgentTokens(server, server.events).now()).toBe(7000);
  });
});

test('a token has expired when its time is over, though no event tells', () => {
  const over = Date.parse('2026-01-02T11:04:05.000Z');
  expect(standing(token(), over - 1)).toBe('active');
  expect(standing(token(), over)).toBe('expired');
  expect(standing(token({ status: 'revoked' }), over)).toBe('revoked');
});
