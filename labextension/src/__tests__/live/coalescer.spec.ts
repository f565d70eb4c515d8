import { Coalescer } from '../../live/coalescer';
import { settle } from '../fakes';

describe('Coalescer', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('runs at once, and once more for all requests during the run', async () => {
    let finish: () => void = () => undefined;
    const task = jest.fn(
      () => new Promise<void>(resolve => (finish = resolve))
    );
    const coalescer = new Coalescer(task, 100);
    void coalescer.request();
    void coalescer.request();
    void coalescer.request();
    expect(task).toHaveBeenCalledTimes(1);
    finish();
    await settle(99);
    expect(task).toHaveBeenCalledTimes(1);
    await settle(1);
    expect(task).toHaveBeenCalledTimes(2);
    finish();
    await settle();
    expect(task).toHaveBeenCalledTimes(2);
  });

  it('keeps a request made during the rest', async () => {
    const task = jest.fn(async () => undefined);
    const coalescer = new Coalescer(task, 100);
    void coalescer.request();
    await settle(50);
    void coalescer.request();
    expect(task).toHaveBeenCalledTimes(1);
    await settle(50);
    expect(task).toHaveBeenCalledTimes(2);
  });

  it('does not rest before what is urgent, and tells when it is done', async () => {
    let finish: () => void = () => undefined;
    const task = jest.fn(
      () => new Promise<void>(resolve => (finish = resolve))
    );
    const coalescer = new Coalescer(task, 100);
    const done = jest.fn();
    void coalescer.request();
    void coalescer.request(true).then(done);
    finish();
    await settle(0);
    expect(task).toHaveBeenCalledTimes(2);
    expect(done).not.toHaveBeenCalled();
    finish();
    await settle(1);
    expect(done).toHaveBeenCalled();
    void coalescer.request(true);
    expect(task).toHaveBeenCalledTimes(3);
    coalescer.dispose();
    await coalescer.request();
    expect(task).toHaveBeenCalledTimes(3);
  });

  it('rejects the request whose task failed, and runs again', async () => {
    const task = jest.fn(async () => Promise.reject(new Error('No.')));
    const coalescer = new Coalescer(task, 100);
    await expect(coalescer.request()).rejects.toThrow('No.');
    const again = coalescer.request().catch(String);
    await settle();
    expect(await again).toBe('Error: No.');
    expect(task).toHaveBeenCalledTimes(2);
  });

  it('runs nothing after it was disposed, in a run or a rest', async () => {
    let finish: () => void = () => undefined;
    const task = jest.fn(
      () => new Promise<void>(resolve => (finish = resolve))
    );
    const inRun = new Coalescer(task, 100);
    void inRun.request();
    void inRun.request();
    inRun.dispose();
    finish();
    await settle();
    void inRun.request();
    expect(task).toHaveBeenCalledTimes(1);

    const inRest = new Coalescer(task, 100);
    void inRest.request();
    finish();
    await settle(50);
    void inRest.request();
    inRest.dispose();
    await settle();
    expect(inRest.isDisposed).toBe(true);
    expect(task).toHaveBeenCalledTimes(2);
  });
});
