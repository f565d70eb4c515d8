import { Dialog } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { undo } from '../../review/undo';
import { CommandIDs } from '../../tokens';
import { execution, FakeServer } from '../fakes';

const trans = nullTranslator.load('');
const KERNEL = {
  id: 'k_1',
  name: 'python3',
  restarted: false,
  reason: null
};

const DOCUMENT = {
  path: 'a.ipynb',
  cell_id: 'x_1',
  via: 'tab' as const,
  status: 'written' as const,
  outputs: 'inert' as const,
  reason: null,
  placement: null,
  follows: []
};

/** Accept a dialog; return its text. */
async function accepted(isTicked = false): Promise<string> {
  while (!Dialog.tracker.currentWidget?.isAttached) {
    await new Promise(resolve => requestAnimationFrame(resolve));
  }
  const dialog = Dialog.tracker.currentWidget;
  const text = dialog.node.textContent ?? '';
  const tick = dialog.node.querySelector<HTMLInputElement>('[type=checkbox]');
  expect(tick?.checked ?? false).toBe(false);
  if (isTicked) {
    tick!.click();
  }
  dialog.resolve();
  return text;
}

/** Undo, and accept the dialog; return its text and what the server was asked. */
async function undone(
  given: Partial<FakeServer['checkpoints']>
): Promise<[string, string[]]> {
  const server = new FakeServer();
  server.put(execution({ kernel: KERNEL }));
  server.checkpoints = { ...server.checkpoints, ...given };
  const over = undo(server, 'x_1', async () => undefined, trans);
  const text = await accepted();
  await over;
  return [text, server.calls.filter(each => /undo|keep/.test(each))];
}

/** Undo an execution in a notebook, whose changes are undone too if that is ticked. */
async function undoneIn(isTicked: boolean): Promise<unknown[]> {
  const server = new FakeServer();
  server.put(execution({ kernel: KERNEL, document: DOCUMENT }));
  const one = { execution_id: 'x_1', at: '', bytes: 1, undoable: true };
  const checkpoints = [one];
  server.checkpoints = { ...server.checkpoints, enabled: true, checkpoints };
  const executed: unknown[] = [];
  const execute = async (...given: unknown[]) => executed.push(given);
  const over = undo(server, 'x_1', execute, trans);
  expect(await accepted(isTicked)).toContain('in the notebook since');
  await over;
  expect(server.calls).toContain('undo x_1');
  return executed;
}

describe('undo', () => {
  it('undoes what was changed in the notebook since, if that is ticked', async () => {
    const since = '2026-01-02T03:04:05.000Z';
    expect(await undoneIn(true)).toEqual([
      [CommandIDs.undoRound, { session_id: 's_1', since }]
    ]);
    expect(await undoneIn(false)).toEqual([]);
  });

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
