import { RerunModel } from '../../rerun/model';
import type { IRerun } from '../../wire';
import { FakeServer, session, settle } from '../fakes';

function rerun(given: Partial<IRerun> = {}): IRerun {
  return {
    session_id: 's_new',
    of: 's_1',
    status: 'finished',
    cells: [],
    total: 1,
    inputs: [],
    ...given
  };
}

async function open(id = 's_1', ...reruns: IRerun[]) {
  const server = new FakeServer();
  server.reruns = reruns;
  server.sessions = reruns.map(({ session_id }) => session({ id: session_id }));
  const model = new RerunModel(id, server);
  await settle();
  return { model, server };
}

describe('RerunModel', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('has nothing to show of a session that never ran again', async () => {
    const { model } = await open();
    expect(model.state.phase).toBe('ready');
    expect(model.rerun).toBeNull();
  });

  it('shows the newest result, or the one that it is opened with', async () => {
    const both = [rerun(), rerun({ session_id: 's_old' })];
    const { model } = await open('s_1', ...both);
    expect(model.rerun?.session_id).toBe('s_new');
    model.show('s_old');
    await settle();
    expect(model.rerun?.session_id).toBe('s_old');
    const own = await open('s_old', ...both);
    expect(own.model.rerun?.session_id).toBe('s_old');
  });

  it('follows what runs to its end', async () => {
    const { model, server } = await open('s_1', rerun({ status: 'running' }));
    expect(model.rerun?.status).toBe('running');
    server.reruns = [rerun()];
    server.answer();
    await settle();
    expect(model.rerun?.status).toBe('finished');
  });

  it('runs the code of the first session, and once, whatever fails', async () => {
    const { model, server } = await open('s_new', rerun());
    jest.spyOn(server, 'getRerun').mockRejectedValueOnce(new Error('gone'));
    model.run(true);
    await settle();
    expect(model.state.phase).toBe('error');
    model.retry();
    await settle();
    expect(model.state.phase).toBe('ready');
    const ran = server.calls.filter(call => call.startsWith('run again'));
    expect(ran).toEqual(['run again s_1 isolated']);
  });

  it('runs again what could not begin', async () => {
    const { model, server } = await open();
    server.failure = new Error('no kernel');
    model.run(false);
    await settle();
    expect(model.state.phase).toBe('error');
    server.failure = null;
    server.reruns = [rerun()];
    server.sessions = [session({ id: 's_new' })];
    model.retry();
    await settle();
    expect(server.calls).toContain('run again s_1');
    expect(model.rerun?.session_id).toBe('s_new');
  });

  it('says nothing once it is disposed', async () => {
    const { model, server } = await open('s_1', rerun({ status: 'running' }));
    const changed = jest.fn();
    model.changed.connect(changed);
    model.dispose();
    server.failure = new Error('gone');
    server.answer();
    await settle();
    expect(changed).not.toHaveBeenCalled();
  });
});
