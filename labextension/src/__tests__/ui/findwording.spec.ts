import { nullTranslator } from '@jupyterlab/translation';
import {
  besideTitle,
  foundText,
  inOneLine,
  snippetParts,
  sourceLine,
  targetText,
  titleText
} from '../../ui/wording';
import { optionFor } from '../../panel/list';
import { hit, session, target } from '../fakes';

const trans = nullTranslator.load('jupyter_agent_exec');

describe('snippetParts', () => {
  it('tells matches from what is between them', () => {
    expect(snippetParts('a \u2068mean\u2069,\n the \u2068mean\u2069')).toEqual([
      { text: 'a ', isMatch: false },
      { text: 'mean', isMatch: true },
      { text: ', the ', isMatch: false },
      { text: 'mean', isMatch: true }
    ]);
    expect(snippetParts('')).toEqual([]);
  });

  it('shows what an agent wrote for what it is', () => {
    expect(snippetParts('\u2068a\u2069\u2069 \u202e\u2068b')).toEqual([
      { text: 'a', isMatch: true },
      { text: '\ufffd \ufffd\ufffdb', isMatch: false }
    ]);
  });
});

describe('inOneLine', () => {
  it('leaves nothing that moves or hides text', () => {
    expect(inOneLine('  a\n\tb\u202ec\u0007 ')).toBe('a b\ufffdc\ufffd');
  });
});

describe('sourceLine', () => {
  it('is the first that says something', () => {
    expect(sourceLine('\n  \n  x = 1\ny')).toBe('x = 1');
    expect(sourceLine('')).toBe('');
  });
});

describe('names of what is found', () => {
  it('name a session by its title, or its agent', () => {
    expect(titleText({ agent: 'a', title: 'Sales' })).toBe('“Sales”');
    expect(besideTitle({ agent: 'a', title: 'Sales' })).toBe('“a”');
    expect(titleText({ agent: 'a\u202e', title: null })).toBe('“a\ufffd”');
  });

  it('say an agent’s name once', () => {
    expect(besideTitle({ agent: 'a', title: null })).toBe('');
    expect(besideTitle({ agent: 'a', title: ' a' })).toBe('');
  });

  it('name the notebook, where it is now', () => {
    const notebook = target('notebook');
    const moved = session({ target: notebook, path: 'new.ipynb' });
    expect(targetText(moved, trans)).toBe('new.ipynb');
    expect(targetText(session({ target: notebook }), trans)).toBe('a.ipynb');
    expect(targetText(session(), trans)).toBe('Scratch kernel');
    expect(targetText(session({ target: target('kernel') }), trans)).toBe(
      'Running kernel'
    );
  });

  it('count what was found', () => {
    expect(foundText([], false, trans)).toBe('No cell matches');
    expect(foundText([hit()], false, trans)).toBe('1 cell matches');
    expect(foundText([hit()], true, trans)).toBe(
      'The newest 1 cells that match'
    );
  });
});

describe('optionFor', () => {
  it('leads through a list', () => {
    const list = document.createElement('ul');
    const options = ['a', 'b', 'c'].map(() => {
      const option = document.createElement('li');
      option.setAttribute('role', 'option');
      return list.appendChild(option);
    });
    const inside = options[1].appendChild(document.createElement('span'));
    const to = (key: string) => {
      const option = optionFor(key, inside) as HTMLLIElement | null;
      return option && options.indexOf(option);
    };
    expect(['ArrowUp', 'ArrowDown', 'Home', 'End'].map(to)).toEqual([
      0, 2, 0, 2
    ]);
    expect(['Enter', ' ', 'x'].map(to)).toEqual([1, 1, null]);
    expect(optionFor('ArrowDown', options[2])).toBeNull();
    expect(optionFor('ArrowDown', list)).toBeFalsy();
  });
});
