import { nullTranslator } from '@jupyterlab/translation';
import { askReason } from '../../ui/reason';
import { answerDialog, shownDialog } from '../dialogs';
import { settle } from '../fakes';

describe('askReason', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('takes no more characters than the server, and keeps what was typed', async () => {
    const answer = askReason(nullTranslator.load(''));
    await settle();
    const type = (text: string) => {
      const input = shownDialog().querySelector('input')!;
      input.value = text;
      input.dispatchEvent(new Event('input', { bubbles: true }));
    };
    const button = shownDialog().querySelector<HTMLButtonElement>(
      'button.jp-mod-accept'
    )!;
    type('x'.repeat(5001));
    expect(button.disabled).toBe(true);
    type('x'.repeat(5000));
    expect(button.disabled).toBe(false);
    answerDialog('Not on production');
    expect(await answer).toBe('Not on production');
  });
});
