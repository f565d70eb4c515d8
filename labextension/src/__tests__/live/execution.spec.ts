import { ExecutionModel } from '../../live/execution';
import { execution, FakeServer, stdout } from '../fakes';

function model(given = {}) {
  const finished = jest.fn();
  const changes: string[] = [];
  const it = new ExecutionModel(execution(given), finished);
  it.changed.connect((_, what) => changes.push(what));
  return { it, finished, changes };
}

describe('ExecutionModel', () => {
  it('keeps outputs that are equal, so that they are not drawn again', () => {
    const outputs = [stdout('a'), stdout('b')];
    const { it, changes } = model({ cell: { outputs } });
    it.set(execution({ cell: { outputs: [stdout('a'), stdout('b')] } }));
    expect(changes).toEqual(['status']);
    it.set(execution({ cell: { outputs: [stdout('a'), stdout('c')] } }));
    expect(changes).toEqual(['status', 'status', 'outputs']);
    expect(it.outputs[0]).toBe(outputs[0]);
    expect(it.outputs[1]).toEqual(stdout('c'));
  });

  it('sees that outputs became fewer', () => {
    const { it } = model({ cell: { outputs: [stdout('a')] } });
    it.set(execution());
    expect(it.outputs).toEqual([]);
  });

  it('takes a status and keeps what it does not tell', () => {
    const { it } = model({ status: 'queued', started_at: null });
    const at = '2026-01-02T03:04:07.000Z';
    it.applyStatus({
      status: 'running',
      execution_count: null,
      started_at: at,
      waiting_for: null,
      input: null
    });
    expect(it.execution).toMatchObject({
      status: 'running',
      execution_count: 1,
      started_at: at
    });
    it.applyStatus({
      status: 'running',
      execution_count: 5,
      started_at: null,
      waiting_for: null,
      input: null
    });
    expect(it.execution).toMatchObject({ execution_count: 5, started_at: at });
  });

  it('tells once that it has finished', () => {
    const { it, finished } = model({ status: 'running' });
    it.setStatus(execution({ status: 'running' }));
    expect(finished).not.toHaveBeenCalled();
    it.set(execution());
    it.set(execution());
    expect(finished).toHaveBeenCalledTimes(1);
  });

  it('tells nothing of what had finished before', () => {
    const { it, finished } = model();
    it.set(execution({ status: 'error' }));
    expect(finished).not.toHaveBeenCalled();
  });

  it('takes steps of outputs and refuses those that do not fit', () => {
    const { it, changes } = model({ status: 'running' });
    expect(it.applyOutput({ index: 0, output: stdout('a') })).toBe(true);
    expect(it.applyOutput({ index: 5, append: 'b' })).toBe(false);
    expect(it.outputs).toEqual([stdout('a')]);
    expect(changes).toEqual(['outputs']);
  });

  it('tells nothing after it was disposed', () => {
    const { it, changes } = model();
    it.dispose();
    it.set(execution({ status: 'error' }));
    expect(it.isDisposed).toBe(true);
    expect(changes).toEqual([]);
  });

  describe('with outputs that were left out', () => {
    const left_out = [{ index: 0, bytes: 9000, mimetypes: ['text/plain'] }];
    const brief = { cell: { outputs: [stdout(''), stdout('b')] }, left_out };
    const whole = execution({ cell: { outputs: [stdout('a'), stdout('b')] } });

    function server(): FakeServer {
      const it = new FakeServer();
      it.put(whole);
      return it;
    }

    it('fetches them once', async () => {
      const { it, changes } = model(brief);
      const api = server();
      await it.openOutput(0, api);
      await it.openOutput(0, api);
      expect(api.calls).toEqual(['execution x_1']);
      expect(it.outputs).toEqual([stdout('a'), stdout('b')]);
      expect([...it.opened]).toEqual([0]);
      expect(changes).toEqual(['outputs', 'outputs']);
    });

    it('keeps what was fetched while nothing changes', async () => {
      const { it } = model(brief);
      await it.openOutput(0, server());
      it.set(execution(brief));
      expect(it.outputs[0]).toEqual(stdout('a'));
      const more = [{ ...left_out[0], bytes: 9001 }];
      it.set(execution({ ...brief, left_out: more }));
      expect(it.outputs[0]).toEqual(stdout(''));
      expect(it.opened.size).toBe(0);
    });

    it('knows what was left out of its own outputs, not of a status', () => {
      const { it } = model({ cell: whole.cell });
      it.setStatus(execution(brief));
      expect(it.execution.left_out).toEqual([]);
      expect(it.outputs[0]).toEqual(stdout('a'));
    });

    it('stays whole when what was watched to its end is read in brief', () => {
      const { it, changes } = model(whole);
      it.set(execution({ ...brief, reason: 'reviewed' }));
      expect(it.outputs).toEqual([stdout('a'), stdout('b')]);
      expect(it.execution.left_out).toEqual([]);
      expect(it.execution.reason).toBe('reviewed');
      expect(changes).toEqual(['status']);
      it.set(execution({ ...brief, cell: { outputs: [stdout('')] } }));
      expect(it.outputs).toEqual([stdout('')]);
    });

    it('takes steps of its stream for newer than what was fetched', async () => {
      const { it } = model(brief);
      await it.openOutput(0, server());
      expect(it.applyOutput({ index: 1, append: 'c' })).toBe(true);
      expect(it.outputs).toEqual([stdout(''), stdout('bc')]);
    });

    it('takes nothing that comes too late', async () => {
      const { it } = model(brief);
      const opening = it.openOutput(0, server());
      it.set(whole);
      await opening;
      expect(it.opened.size).toBe(0);
      const other = model(brief).it;
      const late = other.openOutput(0, server());
      other.dispose();
      await late;
      expect(other.outputs[0]).toEqual(stdout(''));
    });

    it('is read again as whole as it is', async () => {
      const api = server();
      const { it } = model(whole);
      await it.refresh(api);
      expect(api.calls).toEqual(['execution x_1']);
      api.forget();
      api.put(execution({ ...brief, reason: 'again' }));
      const other = model(brief).it;
      await other.refresh(api);
      expect(api.calls).toEqual(['s_1 after 0']);
      expect(other.execution.reason).toBe('again');
      const late = other.refresh(api);
      api.put(execution({ ...brief, reason: 'late' }));
      other.dispose();
      await late;
      expect(other.execution.reason).toBe('again');
    });
  });
});
