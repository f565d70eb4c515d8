import { ApiError } from '../../api/errors';
import { readCellRecord } from '../../api/cellrecord';
import { LiveModel } from '../../live/live';
import { Reviews } from '../../review/reviews';
import type { ICellRecord, IReview } from '../../tokens';
import { execution, FakeServer, settle } from '../fakes';

const APPROVED: IReview = {
  verdict: 'approved',
  comment: null,
  by: 'Ada',
  at: '2026-01-02T03:04:05.000Z'
};

function record(seq: number | null, given: object = {}): ICellRecord {
  return readCellRecord({
    session_id: 's_1',
    execution_id: `x_${seq}`,
    seq,
    agent: { name: 'analyst' },
    status: 'ok',
    ...given
  })!;
}

describe('Reviews', () => {
  let server: FakeServer;
  let reviews: Reviews;
  let changes: number;
  /** What the server was asked for besides what goes on. */
  const calls = () => server.calls.filter(call => call !== 'approvals');

  beforeEach(() => {
    jest.useFakeTimers();
    server = new FakeServer();
    reviews = new Reviews(new LiveModel(server, server.events));
    changes = 0;
    reviews.changed.connect(() => changes++);
    server.put(
      execution({ seq: 1 }),
      execution({ seq: 2, review: APPROVED }),
      execution({ seq: 3 })
    );
  });

  afterEach(() => {
    reviews.dispose();
    jest.useRealTimers();
  });

  it('reads what is said of all cells of a notebook at once', async () => {
    [1, 2, 3].forEach(seq => reviews.look(record(seq)));
    expect(reviews.get('x_2')).toBeNull();
    await settle();
    expect(reviews.get('x_1')).toBeNull();
    expect(reviews.get('x_2')).toEqual(APPROVED);
    expect(calls()).toEqual(['s_1 after 0']);
    expect(changes).toBe(1);
    reviews.look(record(2));
    await settle();
    expect(calls()).toHaveLength(1);
  });

  it('can be waited for, also while it reads others', async () => {
    reviews.look(record(1));
    const read = reviews.read([record(2), record(3)]);
    await settle();
    await read;
    expect(reviews.get('x_2')).toEqual(APPROVED);
  });

  it('goes on where a page ends, and leaves out what nobody looks at', async () => {
    for (let seq = 4; seq <= 450; seq++) {
      server.put(execution({ seq }));
    }
    [450, 2].forEach(seq => reviews.look(record(seq)));
    await settle();
    expect(calls()).toEqual(['s_1 after 1', 's_1 after 449']);
  });

  it.each([
    ['what runs', record(4, { status: 'running' })],
    ['cells without a number', record(null)]
  ])('does not ask about %s', async (_, asked) => {
    reviews.look(asked);
    await settle();
    expect(calls()).toEqual([]);
  });

  it('reads again what an event is about', async () => {
    [1, 3].forEach(seq => reviews.look(record(seq)));
    server.emit(1);
    await settle();
    server.forget();
    server.put(execution({ seq: 3, review: APPROVED }));
    server.emit(2, { execution_id: 'x_3', status: 'running' });
    server.emit(3, { execution_id: 'x_9', status: 'ok' });
    server.emit(4, { action: 'kernel' });
    await settle();
    expect(calls()).toEqual([]);
    server.emit(5, { execution_id: 'x_3', status: 'ok' });
    await settle();
    expect(calls()).toEqual(['s_1 after 2']);
    expect(reviews.get('x_3')).toEqual(APPROVED);
  });

  it('reads all again when an event was missed', async () => {
    [1, 2].forEach(seq => reviews.look(record(seq)));
    server.emit(1);
    await settle();
    server.forget();
    server.emit(7, { action: 'kernel' });
    await settle();
    expect(calls()).toEqual(['s_1 after 0']);
  });

  it('does not mind other events', async () => {
    reviews.look(record(1));
    await settle();
    server.forget();
    server.events.emit({ schema_id: 'other' });
    await settle();
    expect(calls()).toEqual([]);
  });

  it('leaves sessions alone that are not in this history', async () => {
    server.failure = new ApiError('refused', 'no', 404, 'session_not_found');
    reviews.look(record(1));
    await settle();
    server.failure = null;
    server.emit(1);
    await settle();
    expect(calls()).toHaveLength(2);
    expect(changes).toBe(2);
  });

  it('asks again when the server is back', async () => {
    server.failure = new ApiError('unreachable', 'no');
    reviews.look(record(2));
    await settle();
    expect(changes).toBe(0);
    server.failure = null;
    reviews.look(record(1));
    await settle();
    expect(reviews.get('x_2')).toEqual(APPROVED);
  });

  it('asks nothing after its end', async () => {
    reviews.look(record(1));
    reviews.dispose();
    reviews.dispose();
    server.emit(1);
    await settle();
    expect(calls()).toEqual([]);
    expect(reviews.isDisposed).toBe(true);
  });
});
