import { ExecutionModel } from '../../model/execution';
import { execution, stdout } from '../fakes';

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
      started_at: at
    });
    expect(it.execution).toMatchObject({
      status: 'running',
      execution_count: 1,
      started_at: at
    });
    it.applyStatus({ status: 'running', execution_count: 5, started_at: null });
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
});
