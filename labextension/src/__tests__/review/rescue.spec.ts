import { Notification } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { tellRescues } from '../../review/rescue';
import { FakeServer } from '../fakes';

const trans = nullTranslator.load('');
const rescued = { at: new Date(2026, 1, 1, 10, 42).toISOString() };

/** What the user of a notebook is told when its kernel has a status. */
async function told(
  status: string,
  given: Partial<FakeServer['checkpoints']>
): Promise<string[]> {
  Notification.manager.dismiss();
  const server = new FakeServer();
  server.checkpoints = { ...server.checkpoints, ...given };
  const context = { name: 'a.ipynb', session: { kernel: { id: 'k_1' } } };
  const statusChanged = new Signal<object, string>(context);
  const panel = { sessionContext: { ...context, statusChanged } };
  const tracker = {
    forEach: (call: (each: object) => void) => call(panel),
    widgetAdded: new Signal<object, object>({})
  };
  tellRescues(tracker as unknown as INotebookTracker, server, trans);
  statusChanged.emit(status);
  await new Promise(resolve => setTimeout(resolve));
  return Notification.manager.notifications.map(({ message }) => message);
}

describe('a kernel that dies', () => {
  const back = { rescued: { ...rescued, execution_count: 17 } };

  it('is told with the variables that it has', async () => {
    const [text] = await told('autorestarting', back);
    expect(text).toMatch(/^The kernel of a.ipynb died; its variables are .*42/);
    expect(text).toContain('before cell [17]');
  });

  it('is left to JupyterLab if its variables are gone', async () => {
    expect(await told('autorestarting', { rescued: null })).toEqual([]);
    expect(await told('busy', back)).toEqual([]);
  });
});
