import { Signal } from '@lumino/signaling';
import { ApiError } from '../../api/errors';
import { LiveModel } from '../../live/live';
import { keepPolicy } from '../../approvals/policy';
import { FakeServer, settle } from '../fakes';

/** Settings that tell what was written into them. */
class FakeSettings {
  constructor(public user: Record<string, unknown>) {}

  async set(key: string, value: string | string[]): Promise<void> {
    this.written.push(`${key} ${value}`);
    this.user = { ...this.user, [key]: value };
    this.changed.emit();
  }

  /** What a person does. */
  wish(user: Record<string, unknown>): void {
    this.user = user;
    this.changed.emit();
  }

  readonly changed = new Signal<this, void>(this);
  readonly written: string[] = [];
}

/** A page with these settings; the fake server asks for `first` in notebooks. */
async function open(user: Record<string, unknown>, needs_passphrase = false) {
  const server = new FakeServer();
  server.approvals = { ...server.approvals, needs_passphrase };
  const live = new LiveModel(server, server.events);
  const settings = new FakeSettings(user);
  const onError = jest.fn();
  keepPolicy({ live, settings, onError });
  settings.changed.emit();
  await live.refresh();
  await settle();
  const sent = () => server.calls.filter(call => call.startsWith('policy'));
  return { server, live, settings, onError, sent };
}

describe('keepPolicy', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('sends nothing that a person has not set, or that is so already', async () => {
    const { sent, settings } = await open({ notebook: 'first', kernel: 'odd' });
    expect(sent()).toEqual([]);
    expect(settings.written).toEqual([]);
  });

  it('asks nobody for a passphrase because of what settings say', async () => {
    const { sent, settings } = await open({ notebook: 'none' }, true);
    expect(sent()).toEqual([]);
    expect(settings.written).toEqual(['notebook first']);
    settings.wish({ notebook: 'always' });
    await settle();
    expect(sent()).toEqual(['policy {"notebook":"always"}']);
  });

  it('sends once what a person has set and is otherwise', async () => {
    const { live, sent } = await open({ notebook: 'always' });
    expect(sent()).toEqual(['policy {"notebook":"always"}']);
    await live.refresh();
    await settle();
    expect(sent()).toHaveLength(1);
  });

  it('sends what a person changes', async () => {
    const { settings, sent } = await open({});
    settings.wish({ scratch: 'first', kernel: 'none' });
    await settle();
    expect(sent()).toEqual(['policy {"kernel":"none","scratch":"first"}']);
  });

  it('takes over what was changed elsewhere', async () => {
    const { server, live, settings, sent } = await open({
      notebook: 'first'
    });
    await server.setPolicy({ notebook: 'always', scratch: 'always' });
    server.forget();
    await live.refresh();
    await settle();
    expect(settings.written).toEqual(['notebook always']);
    expect(sent()).toEqual([]);
  });

  it('says what went wrong, and shows what holds', async () => {
    const { server, settings, onError } = await open({});
    server.failure = new ApiError('unreachable', 'away');
    settings.wish({ notebook: 'none' });
    await settle();
    expect(onError).toHaveBeenCalledWith(server.failure);
    expect(settings.written).toEqual(['notebook first']);
  });
});
