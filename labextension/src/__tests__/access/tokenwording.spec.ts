import { nullTranslator } from '@jupyterlab/translation';
import { accessText, accessWord } from '../../access/tokenwording';
import { session } from '../fakes';

const trans = nullTranslator.load('');

describe('words', () => {
  it('say by what right an agent works', () => {
    const full = session({ username: 'ada\u202e' });
    expect(accessWord(full, trans)).toBe('Full access');
    expect(accessText(full, trans)).toBe(
      'Full access: the agent has the same permissions as ada\ufffd'
    );
    const limited = session({
      access: 'token',
      token: { id: 't_1', label: 'Claude\u202e' }
    });
    expect(accessWord(limited, trans)).toBe('Claude\ufffd');
    expect(accessText(limited, trans)).toBe(
      'With the agent token “Claude\ufffd”'
    );
  });
});
