import { YNotebook } from '@jupyter/ydoc';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import { LiveModel } from '../../live/live';
import { addRound, roundText } from '../../review/round';
import { CommandIDs } from '../../tokens';
import { FakeServer } from '../fakes';

const trans = nullTranslator.load('');
const SESSION = { session_id: 's_1' };

/** A page with an open notebook, and what the server is asked. */
async function open() {
  Notification.manager.dismiss();
  const server = new FakeServer();
  const sharedModel = new YNotebook();
  const model = { sharedModel };
  const panel = {
    content: { activeCell: null },
    context: { localPath: 'a.ipynb', model, ready: Promise.resolve() },
    sessionContext: { session: null }
  };
  const tracker = {
    currentWidget: panel,
    forEach: (call: (each: object) => void) => call(panel),
    widgetAdded: new Signal<object, object>({})
  };
  const commands = new CommandRegistry();
  const shell = { currentWidget: panel };
  addRound(
    { commands, shell } as unknown as JupyterFrontEnd,
    tracker as unknown as INotebookTracker,
    new LiveModel(server, server.events),
    null,
    trans
  );
  await Promise.resolve();
  const asked = () => server.calls.filter(each => each.includes('round'));
  const told = () => Notification.manager.notifications;
  return { asked, commands, server, sharedModel, told };
}

describe('undoing a round', () => {
  it('undoes what was changed since the last edit of one’s own', async () => {
    const { asked, commands, sharedModel } = await open();
    const before = Date.now();
    sharedModel.insertCell(0, { cell_type: 'code', source: 'mine' });
    sharedModel.transact(() => {
      sharedModel.insertCell(1, { cell_type: 'code', source: 'theirs' });
    }, false);
    await commands.execute(CommandIDs.undoRound, SESSION);
    const [since] = asked().map(each => each.split('since ')[1]);
    expect(Date.parse(since)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(since)).toBeLessThanOrEqual(Date.now());
  });

  it('asks before all is undone, without an edit of one’s own', async () => {
    const { asked, commands, sharedModel } = await open();
    sharedModel.transact(() => {
      sharedModel.insertCell(0, { cell_type: 'code', source: 'theirs' });
    }, false);
    const over = commands.execute(CommandIDs.undoRound, SESSION);
    while (!Dialog.tracker.currentWidget?.isAttached) {
      await new Promise(resolve => requestAnimationFrame(resolve));
    }
    expect(asked()).toEqual([]);
    Dialog.tracker.currentWidget.resolve();
    await over;
    expect(asked()).toEqual(['undo round of s_1 since null']);
  });

  it('offers to make it again', async () => {
    const { asked, commands, server, told } = await open();
    server.round = { ...server.round, changes: 2 };
    const since = '2026-01-02T03:04:05.000Z';
    await commands.execute(CommandIDs.undoRound, { ...SESSION, since });
    const [{ message, options }] = told();
    expect(message).toBe('Undid 2 changes.');
    options.actions![0].callback(new MouseEvent('click'));
    await new Promise(resolve => setTimeout(resolve));
    expect(asked()).toEqual([
      `undo round of s_1 since ${since}`,
      'redo round of s_1 since null'
    ]);
  });

  it('says that there is nothing, or no agent', async () => {
    const { commands, told } = await open();
    await commands.execute(CommandIDs.redoRound, SESSION);
    await commands.execute(CommandIDs.undoRound);
    expect(told().map(({ message }) => message)).toEqual([
      'No agent works in this notebook.',
      'Nothing was undone that could be made again.'
    ]);
  });

  it('says what stays, and which outputs are gone', () => {
    const reason = 'The cell was edited since.';
    const left = ['a', 'b'].map(cell_id => ({ cell_id, reason }));
    const round = { ...new FakeServer().round, changes: 1, left };
    expect(roundText('undo', round, trans)).toBe(
      'Undid 1 change. 2 cells stay as they are: The cell was edited since.'
    );
    const text = roundText('undo', { ...round, without_outputs: ['c'] }, trans);
    expect(text).toContain('1 cell has no outputs now');
  });
});
