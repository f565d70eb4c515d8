import { diffWords } from '../../model/worddiff';

describe('diffWords', () => {
  it.each<[string, string, string]>([
    ['df = 1\nx', 'df = 2\nx', 'df = [-1-][+2+]\nx'],
    ['a b', 'a b', 'a b'],
    ['', 'new', '[+new+]'],
    ['größe(1)', 'größe(1, x)', 'größe(1[+, x+])'],
    ['a\n', 'a\nb\n', 'a\n[+b\n+]']
  ])('compares %j with %j', (before, after, shown) => {
    const marks = {
      same: ['', ''],
      added: ['[+', '+]'],
      removed: ['[-', '-]']
    };
    const told = diffWords(before, after).map(({ kind, text }) =>
      marks[kind].join(text)
    );
    expect(told.join('')).toBe(shown);
  });
});
