import { Channel } from '../../api/channel';
import type { ChannelSettings } from '../../api/channel';
import type { NotebookRequest } from '../../api/changes';

/** A socket that the test opens, feeds and closes. */
class FakeSocket {
  static readonly OPEN = 1;
  static all: FakeSocket[] = [];

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }

  open(): void {
    this.readyState = FakeSocket.OPEN;
    this.onopen?.();
  }

  receive(message: unknown): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  lose(): void {
    this.readyState = 3;
    this.onclose?.();
  }

  send(data: string): void {
    this.sent.push(JSON.parse(data));
  }

  readyState = 0;
  sent: unknown[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
}

function newChannel(given: Partial<ChannelSettings> = {}): Channel {
  return new Channel({
    wsUrl: 'ws://host/base/',
    token: 'secret&',
    appendToken: false,
    WebSocket: FakeSocket as unknown as typeof WebSocket,
    ...given
  });
}

function last(): FakeSocket {
  return FakeSocket.all[FakeSocket.all.length - 1];
}

const answered = { op: 'answer', id: 1, status: 'ok' };

describe('Channel', () => {
  let channel: Channel;

  beforeEach(() => {
    jest.useFakeTimers();
    jest.spyOn(Math, 'random').mockReturnValue(0.5);
    FakeSocket.all = [];
    channel = newChannel();
  });

  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('opens one socket, and only when it is asked to', () => {
    expect(FakeSocket.all).toHaveLength(0);
    channel.connect();
    channel.connect();
    expect(FakeSocket.all).toHaveLength(1);
    expect(last().url).toBe('ws://host/base/api/agent-exec/notebooks/channel');
  });

  it('sends the token where JupyterLab does', () => {
    channel = newChannel({ appendToken: true });
    channel.connect();
    expect(last().url).toMatch(/\/channel\?token=secret%26$/);
    channel = newChannel({ appendToken: true, token: '' });
    channel.connect();
    expect(last().url).toMatch(/\/channel$/);
  });

  it('tells that it is open, and what the server asks', () => {
    const opened = jest.fn();
    const asked: NotebookRequest[] = [];
    channel.opened.connect(opened);
    channel.asked.connect((_, each) => void asked.push(each));
    channel.connect();
    expect(opened).not.toHaveBeenCalled();
    last().open();
    last().receive({ op: 'read', id: 1, panel: 'p' });
    expect(opened).toHaveBeenCalledTimes(1);
    expect(asked).toEqual([{ op: 'read', id: 1, panel: 'p' }]);
  });

  it('sends when it is open, and drops what comes before', () => {
    channel.announce([]);
    channel.connect();
    channel.announce([]);
    last().open();
    channel.announce([]);
    channel.answer(1, { status: 'ok' });
    expect(last().sent).toEqual([{ op: 'announce', notebooks: [] }, answered]);
  });

  it('comes back when it was lost, soon at first', () => {
    channel.connect();
    last().open();
    last().lose();
    channel.connect();
    expect(FakeSocket.all).toHaveLength(1);
    jest.advanceTimersByTime(499);
    expect(FakeSocket.all).toHaveLength(1);
    jest.advanceTimersByTime(1);
    expect(FakeSocket.all).toHaveLength(2);
    last().lose();
    jest.advanceTimersByTime(999);
    expect(FakeSocket.all).toHaveLength(2);
    jest.advanceTimersByTime(1);
    expect(FakeSocket.all).toHaveLength(3);
    last().open();
    last().lose();
    jest.advanceTimersByTime(500);
    expect(FakeSocket.all).toHaveLength(4);
  });

  it.each([
    ['a minute', true, 60_000],
    ['ten minutes where the route was never there', false, 600_000]
  ])('waits at most %s', (_, opens, longest) => {
    channel.connect();
    if (opens) {
      last().open();
    }
    for (let n = 0; n < 20; n++) {
      last().lose();
      jest.advanceTimersByTime(longest);
    }
    const attempts = FakeSocket.all.length;
    expect(attempts).toBe(21);
    last().lose();
    jest.advanceTimersByTime(longest - 1);
    expect(FakeSocket.all).toHaveLength(attempts);
    jest.advanceTimersByTime(1);
    expect(FakeSocket.all).toHaveLength(attempts + 1);
  });
});
