import { Dialog, Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { reporter } from '../../ui/commands';
import { settle } from '../fakes';

describe('reporter', () => {
  const report = reporter(nullTranslator.load(''));
  const told = jest.spyOn(Notification, 'error').mockReturnValue('');

  it('says what went wrong', () => {
    report(new Error('No way.'));
    expect(told.mock.lastCall?.[0]).toContain('No way.');
  });

  it('says nothing of a dialog that was disposed', async () => {
    jest.useFakeTimers();
    told.mockClear();
    const dialog = new Dialog({ title: 'Sure?' });
    const answered = dialog.launch().catch(report);
    await settle();
    expect(dialog.isAttached).toBe(true);
    dialog.dispose();
    await answered;
    expect(told).not.toHaveBeenCalled();
    jest.useRealTimers();
  });
});
