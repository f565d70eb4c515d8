import { Dialog } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { undo } from '../../review/undo';
import { execution, FakeServer } from '../fakes';

const trans = nullTranslator.load('');
const KERNEL = {
  id: 'k_1',
  name: 'python3',
  incarnation: 1,
  restarted: false,
  reason: null
};

/** Undo, and accept the dialog; return its text and what the server was asked. */
async function undone(
  given: Partial<FakeServer['checkpoints']>
): Promise<[string, string[]]> {
  const server = new FakeServer();
  server.put(execution({ kernel: KERNEL }));
  server.checkpoints = { ...server.checkpoints, ...given };
  const over = undo(server, 'x_1', trans);
  while (!Dialog.tracker.currentWidget?.isAttached) {
    await new Promise(resolve => requestAnimationFrame(resolve));
  }
  const dialog = Dialog.tracker.currentWidget;
  const text = dialog.node.textContent ?? '';
  dialog.resolve();
  await over;
  return [text, server.calls.filter(each => /undo|keep/.test(each))];
}

describe('undo', () => {
  it('says what does not come back before it undoes', async () => {
    const one = { execution_id: 'x_1', at: '', bytes: 1, undoable: true };
    const [text, calls] = await undone({ enabled: true, checkpoints: [one] });
    expect(text).toContain('Files.');
    expect(calls).toEqual(['undo x_1']);
  });

  it('says why it cannot be', async () => {
    const reason = 'Undo is not available here: a thread.';
    const [text, calls] = await undone({ enabled: true, reason });
    expect(text).toContain(reason);
    expect(calls).toEqual([]);
  });

  it('offers to turn it on', async () => {
    const [, calls] = await undone({});
    expect(calls).toEqual(['keep checkpoints of k_1']);
  });
});
