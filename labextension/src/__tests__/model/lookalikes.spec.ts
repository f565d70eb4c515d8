import { lookalikes } from '../../model/lookalikes';
import { readPieces } from '../../model/plainsource';

/** Held against the server's own, too: tests/test_lookalikes.py. */
const CASES = jest.requireActual<{ text: string; found: [number, string][] }[]>(
  '../../../../tests/lookalikes.json'
);

describe('lookalikes', () => {
  it.each(CASES)('finds those in $text', ({ text, found }) => {
    expect(Array.from(lookalikes(text))).toEqual(found);
  });

  it('are shown by their numbers', () => {
    expect(readPieces('os.\uff45val')).toEqual([
      { kind: 'text', text: 'os.' },
      {
        kind: 'hidden',
        text: '\uff45',
        code: 'U+FF45',
        why: 'lookalike',
        like: 'e'
      },
      { kind: 'text', text: 'val' }
    ]);
  });
});
