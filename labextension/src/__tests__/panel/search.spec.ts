import { SearchModel } from '../../panel/search';
import type { ISearchHit, ISearchResults } from '../../tokens';
import { FakeServer, hit, settle } from '../fakes';

function open() {
  const server = new FakeServer();
  const model = new SearchModel(server);
  const look = ({ q }: { q: string }) => {
    model.q = q;
  };
  return { server, model, look };
}

/** Make the server keep its answers until they are wanted. */
function holdAnswers(server: FakeServer) {
  const held: ((hits: ISearchHit[]) => void)[] = [];
  server.search = () =>
    new Promise<ISearchResults>(resolve => {
      held.push(hits => resolve({ hits, next_after: null }));
    });
  return held;
}

describe('SearchModel', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('makes one search of what is typed in one go', async () => {
    const { server, model, look } = open();
    server.hits = [hit()];
    for (const q of ['m', 'me', 'mean']) {
      look({ q });
      await settle(100);
    }
    expect(model.isSearching).toBe(true);
    expect(model.state.phase).toBe('loading');
    await settle();
    expect(server.calls).toEqual(['search mean']);
    expect(model.state.phase).toBe('ready');
    expect(model.hits).toEqual(server.hits);
  });

  it('drops the answer to an earlier search, however late it comes', async () => {
    const { server, model, look } = open();
    const held = holdAnswers(server);
    look({ q: 'first' });
    await settle();
    look({ q: 'second' });
    await settle();
    held[1]([hit({ seq: 2 })]);
    held[0]([hit({ seq: 1 })]);
    await settle();
    expect(model.hits.map(({ seq }) => seq)).toEqual([2]);
  });

  it('drops an answer that comes while more is typed', async () => {
    const { server, model, look } = open();
    const held = holdAnswers(server);
    look({ q: 'first' });
    await settle();
    look({ q: 'first and' });
    held[0]([hit()]);
    await settle(10);
    expect(model.state.phase).toBe('loading');
    expect(model.hits).toEqual([]);
  });

  it('keeps what it has when the server fails, and says so', async () => {
    const { server, model, look } = open();
    server.hits = [hit()];
    look({ q: 'a' });
    await settle();
    server.failure = new Error('down');
    look({ q: 'ab' });
    await settle();
    expect(model.state).toMatchObject({ phase: 'error' });
    expect(model.hits).toHaveLength(1);
    server.failure = null;
    await model.refresh();
    expect(model.state.phase).toBe('ready');
  });

  it('does not take an old failure for an answer', async () => {
    const { server, model, look } = open();
    let fail: (error: Error) => void = () => undefined;
    server.search = () =>
      new Promise((_, reject) => {
        fail = reject;
      });
    look({ q: 'a' });
    await settle();
    model.clear();
    fail(new Error('down'));
    await settle();
    expect(model.state.phase).toBe('ready');
  });

  it('knows whether older cells match too', async () => {
    const { server, model, look } = open();
    const search = jest.spyOn(server, 'search');
    const page = { hits: [hit()], next_after: 'x' };
    search.mockResolvedValueOnce(page);
    look({ q: 'a' });
    await settle();
    expect(model.hasMore).toBe(true);
    expect(search.mock.calls).toEqual([['a', 100]]);
    model.clear();
    expect(model.hasMore).toBe(false);
  });

  it('asks nothing when nothing is looked for', async () => {
    const { server, model, look } = open();
    look({ q: '  ' });
    await settle();
    await model.refresh();
    expect(model.isSearching).toBe(false);
    look({ q: ' error ' });
    await settle();
    expect(model.isSearching).toBe(true);
    model.clear();
    await settle();
    expect(model.hits).toEqual([]);
    expect(server.calls).toEqual(['search error']);
  });

  it('lets go of everything when it is disposed', async () => {
    const { server, model, look } = open();
    look({ q: 'a' });
    model.dispose();
    model.dispose();
    await settle();
    expect(model.isDisposed).toBe(true);
    expect(server.calls).toEqual([]);
  });
});
