import { nullTranslator } from '@jupyterlab/translation';
import {
  BrowserNotices,
  permission,
  TitleCount
} from '../../widgets/background';
import { execution } from '../fakes';

const trans = nullTranslator.load('jupyter_agent_exec');

/** Let observers of the page hear of its changes. */
const observed = () => new Promise(resolve => setTimeout(resolve, 0));

describe('TitleCount', () => {
  it('stands before the title, also when that changes, until nothing asks', async () => {
    document.title = 'JupyterLab';
    const title = new TitleCount();
    title.show(2);
    expect(document.title).toBe('(2) JupyterLab');
    document.title = '(1) data.ipynb - JupyterLab';
    await observed();
    expect(document.title).toBe('(2) (1) data.ipynb - JupyterLab');
    title.show(3);
    expect(document.title).toBe('(3) (1) data.ipynb - JupyterLab');
    title.show(0);
    expect(document.title).toBe('(1) data.ipynb - JupyterLab');
    title.dispose();
    document.title = 'other';
    await observed();
    expect(document.title).toBe('other');
    expect(title.isDisposed).toBe(true);
  });
});

describe('BrowserNotices', () => {
  afterEach(() => {
    jest.restoreAllMocks();
    Reflect.deleteProperty(window, 'Notification');
  });

  it('tells who asks, not for what, and only in the background', () => {
    expect(permission()).toBe('denied');
    const Notice = jest.fn((title: string, options: object) => ({
      title,
      options,
      close: jest.fn()
    }));
    Object.assign(Notice, { permission: 'granted' });
    Object.assign(window, { Notification: Notice });
    const hidden = jest.spyOn(document, 'hidden', 'get').mockReturnValue(false);
    const notices = new BrowserNotices(trans, jest.fn());
    const seen = execution({ id: 'x_1', source: 'secret' });
    notices.follow([seen]);
    hidden.mockReturnValue(true);
    notices.follow([seen]);
    expect(Notice).not.toHaveBeenCalled();
    notices.follow([seen, execution({ id: 'x_2', source: 'secret' })]);
    expect(JSON.stringify(Notice.mock.calls)).not.toContain('secret');
    expect(Notice.mock.calls[0][0]).toBe('Agent “analyst” needs approval');
    const { close } = Notice.mock.results[0].value;
    expect(close).not.toHaveBeenCalled();
    notices.follow([seen]);
    expect(close).toHaveBeenCalled();
  });
});
