import { ApiError } from '../../api/errors';
import { followStream, interpret, pause } from '../../api/stream';
import type { OpenStream } from '../../api/stream';
import type { StreamEvent } from '../../tokens';
import { execution, stdout } from '../fakes';

/** A response whose body comes in pieces; an Error breaks it. */
function response(pieces: (string | Error)[], status = 200): Response {
  const queue = pieces.slice();
  const reader = {
    read: async () => {
      const piece = queue.shift();
      if (piece instanceof Error) {
        throw piece;
      }
      return piece === undefined
        ? { done: true, value: undefined }
        : { done: false, value: new TextEncoder().encode(piece) };
    },
    cancel: jest.fn(async () => undefined)
  };
  return {
    ok: status < 400,
    status,
    statusText: '',
    body: { getReader: () => reader },
    text: async () => JSON.stringify({ message: 'Gone.', code: 'not_found' })
  } as unknown as Response;
}

function event(kind: string, id: number, data: unknown): string {
  return `event: ${kind}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Follow a stream whose connections are these, noting ids and pauses. */
async function follow(
  connections: (Response | Error)[],
  signal = new AbortController().signal
) {
  const events: StreamEvent[] = [];
  const ids: (string | null)[] = [];
  const pauses: number[] = [];
  const open: OpenStream = async lastEventId => {
    ids.push(lastEventId);
    const next = connections.shift();
    if (next instanceof Error || !next) {
      throw next ?? new Error('no more connections');
    }
    return next;
  };
  const wait = async (seconds: number) => {
    pauses.push(seconds);
  };
  let error: unknown = null;
  try {
    for await (const each of followStream(open, signal, wait)) {
      events.push(each);
    }
  } catch (reason) {
    error = reason;
  }
  return { events, ids, pauses, error };
}

const done = execution();

describe('interpret', () => {
  it('knows the four kinds of events and no others', () => {
    const of = (kind: string, data: unknown) =>
      interpret({ event: kind, data: JSON.stringify(data), id: '' });
    expect(of('accepted', done)).toMatchObject({ finished: false });
    expect(of('finished', done)).toMatchObject({ finished: true });
    expect(of('status', { status: 'running' })?.kind).toBe('status');
    expect(of('output', { index: 0 })?.kind).toBe('output');
    expect(of('future', {})).toBeNull();
  });
});

describe('followStream', () => {
  it('ends after the event that says it has finished', async () => {
    const change = { index: 0, output: stdout('a') };
    const { events, error } = await follow([
      response([
        event('accepted', 1, done),
        event('future', 2, {}),
        event('output', 3, change) + event('finished', 4, done),
        event('output', 5, change)
      ])
    ]);
    expect(error).toBeNull();
    expect(events.map(({ kind }) => kind)).toEqual([
      'execution',
      'output',
      'execution'
    ]);
  });

  it('resumes after the last event when the stream breaks', async () => {
    const { ids, events, error } = await follow([
      response([event('output', 3, { index: 0 }), new Error('broken')]),
      response([event('finished', 4, done)])
    ]);
    expect(error).toBeNull();
    expect(ids).toEqual([null, '3']);
    expect(events).toHaveLength(2);
  });

  it('resumes after the stream just ends, as the server asks', async () => {
    const { pauses } = await follow([
      response(['retry: 250\n\n', event('output', 3, { index: 0 })]),
      response([event('finished', 4, done)])
    ]);
    expect(pauses).toEqual([0.25]);
  });

  it('throws what the server refuses', async () => {
    const { error, ids } = await follow([response([], 404)]);
    expect(error).toMatchObject({ code: 'not_found', message: 'Gone.' });
    expect(ids).toHaveLength(1);
  });

  it('gives up after five attempts that bring nothing', async () => {
    const empty = () => response([]);
    const { error, ids } = await follow([
      new ApiError('unreachable', 'down'),
      empty(),
      { ...empty(), body: null } as Response,
      empty(),
      empty()
    ]);
    expect(error).toMatchObject({ failure: 'unreachable' });
    expect(ids).toHaveLength(5);
  });

  it('ends without an error when it is aborted', async () => {
    const abort = new AbortController();
    const { events, error } = await follow(
      [
        {
          ...response([]),
          body: {
            getReader: () => ({
              read: async () => {
                abort.abort();
                throw new Error('aborted');
              },
              cancel: async () => {
                throw new Error('already');
              }
            })
          }
        } as unknown as Response
      ],
      abort.signal
    );
    expect(error).toBeNull();
    expect(events).toEqual([]);
  });
});

describe('pause', () => {
  it('ends with the time', async () => {
    await expect(
      pause(0.001, new AbortController().signal)
    ).resolves.toBeUndefined();
  });

  it('ends at once when aborted, before or during it', async () => {
    const abort = new AbortController();
    const waiting = pause(3600, abort.signal);
    abort.abort();
    await waiting;
    await pause(3600, abort.signal);
  });
});
