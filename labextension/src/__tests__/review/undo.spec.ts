import { Dialog } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { undo } from '../../review/undo';
import type { IProposedEdit } from '../../wire';
import { execution, FakeServer, proposal, proposedEdit } from '../fakes';

const trans = nullTranslator.load('');
const KERNEL = {
  id: 'k_1',
  name: 'python3',
  restarted: false,
  reason: null
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
  const over = undo(server, 'x_1', trans);
  const text = await accepted();
  await over;
  return [text, server.calls.filter(each => /undo|keep/.test(each))];
}

/** A server on which an execution can be undone, after which edits were proposed. */
function withRound(): FakeServer {
  const server = new FakeServer();
  server.put(execution({ kernel: KERNEL }));
  const one = { execution_id: 'x_1', at: '', bytes: 1, undoable: true };
  const checkpoints = [one];
  server.checkpoints = { ...server.checkpoints, enabled: true, checkpoints };
  const edit = (id: string, given: Partial<IProposedEdit>) =>
    proposedEdit({ id, kind: 'change', ...given });
  server.proposals = [
    {
      ...proposal([edit('before', { status: 'kept' })]),
      proposed_at: '2026-01-02T03:04:04.999Z'
    },
    proposal([
      edit('kept', { status: 'kept' }),
      edit('changed', { status: 'kept', fits: false, reason: 'Edited since.' }),
      edit('rejected', { status: 'rejected' }),
      edit('open', {})
    ])
  ];
  return server;
}

describe('undo', () => {
  it('takes back what was kept since, if that is ticked', async () => {
    const server = withRound();
    const over = undo(server, 'x_1', trans);
    expect(await accepted(true)).toContain('the 2 proposals kept');
    expect(await accepted()).toContain('Edited since.');
    await over;
    expect(server.decided).toEqual([
      ['undo', ['kept', 'changed']],
      ['reject', ['kept', 'open']]
    ]);
  });

  it('leaves proposals alone unless that is ticked', async () => {
    const server = withRound();
    const over = undo(server, 'x_1', trans);
    await accepted();
    await over;
    expect(server.calls).toContain('undo x_1');
    expect(server.decided).toEqual([]);
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
