import { diffLines } from '../../ui/textdiff';

/** A comparison as `diff` writes it. */
function written(before: string, after: string): string {
  const signs = { same: ' ', added: '+', removed: '-' };
  return diffLines(before.split(''), after.split(''))
    .map(({ kind, text }) => signs[kind] + text)
    .join('');
}

describe('diffLines', () => {
  it.each([
    ['', '', ''],
    ['abc', 'abc', ' a b c'],
    ['abc', 'axc', ' a-b+x c'],
    ['abc', '', '-a-b-c'],
    ['', 'ab', '+a+b'],
    ['ab', 'xab', '+x a b'],
    ['ab', 'abx', ' a b+x'],
    ['aab', 'ab', ' a-a b'],
    ['abcabba', 'cbabac', '-a-b c-a b+a b a+c'],
    ['xaybz', 'paqbr', '-x+p a-y+q b-z+r']
  ])('of %j and %j', (before, after, expected) => {
    expect(written(before, after)).toBe(expected);
  });

  it('gives both texts back', () => {
    const [before, after] = ['the quick brown fox', 'a quicker brownish ox'];
    const lines = diffLines(before.split(''), after.split(''));
    const side = (left: string) =>
      lines.flatMap(({ kind, text }) => (kind === left ? [] : text)).join('');
    expect(side('added')).toBe(before);
    expect(side('removed')).toBe(after);
  });

  it('takes all between for replaced where there is too much to compare', () => {
    const many = (sign: string) =>
      Array.from({ length: 1001 }, (_, at) => (at % 2 ? 'same' : sign + at));
    const lines = diffLines(many('a'), many('b'));
    expect(lines.map(({ kind }) => kind[0]).join('')).toBe(
      'r'.repeat(1001) + 'a'.repeat(1001)
    );
  });
});
