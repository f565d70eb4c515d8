import { freeName, notebookName } from '../../ui/sessionpaths';
import { session } from '../fakes';

describe('notebookName', () => {
  it.each([
    ['Sales by region', 'Agent session Sales by region'],
    [null, 'Agent session s_1'],
    ['  ', 'Agent session s_1'],
    ['../../etc/passwd', 'Agent session .. .. etc passwd'],
    ['a/b\\c:d*e?f"g<h>i|j', 'Agent session a b c d e f g h i j'],
    ['line\nbreak\u202Eevil\u0000', 'Agent session line break evil'],
    ['x'.repeat(200), `Agent session ${'x'.repeat(80)}`]
  ])('names %j', (title, name) => {
    expect(notebookName(session({ title }))).toBe(name);
  });
});

describe('freeName', () => {
  it('takes the name if it is free', () => {
    expect(freeName('a', ['b.ipynb'])).toBe('a.ipynb');
  });

  it('counts on, whatever the case, as some file systems do', () => {
    expect(freeName('A', ['a.ipynb', 'a (2).IPYNB'])).toBe('A (3).ipynb');
  });
});
