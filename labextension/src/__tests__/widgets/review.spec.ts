import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IReview, Verdict } from '../../tokens';
import { ReviewRow } from '../../widgets/review';
import {
  commentText,
  reviewText,
  unreviewedText
} from '../../widgets/reviewwording';

const trans = nullTranslator.load('');

const APPROVED: IReview = {
  verdict: 'approved',
  comment: 'As I thought',
  by: 'Ada',
  at: '2026-01-02T03:04:05.000Z',
  whole_session: false
};

describe('reviewText', () => {
  it.each([
    [{}, 'Reviewed by Ada'],
    [{ whole_session: true }, 'Reviewed with the session by Ada'],
    [{ verdict: 'flagged' as const }, 'Flagged by Ada'],
    [
      { verdict: 'flagged' as const, whole_session: true },
      'Flagged with the session by Ada'
    ],
    [{ verdict: null }, 'Commented on by Ada'],
    [{ verdict: null, whole_session: true }, 'Session commented on by Ada']
  ])('says %j as %s', (given, said) => {
    expect(reviewText({ ...APPROVED, ...given }, trans)).toBe(said);
  });

  it('shows no name in disguise', () => {
    const text = reviewText({ ...APPROVED, by: 'a\u202Ebc' }, trans);
    expect(text).not.toContain('\u202E');
  });
});

describe('commentText', () => {
  it('keeps lines and tabs', () => {
    const comment = 'as\tI\r\nthought\rit\n\nis';
    expect(commentText({ ...APPROVED, comment })).toBe(
      'as\tI\nthought\nit\n\nis'
    );
  });

  it('shows what turns the text around it, or cannot be seen', () => {
    const comment = 'a\u202eb\u0007c\nd\u2028e';
    expect(commentText({ ...APPROVED, comment })).toBe(
      'a\ufffdb\ufffdc\nd\ufffde'
    );
  });

  it('is empty where nothing was said', () => {
    expect(commentText({ ...APPROVED, comment: null })).toBe('');
  });
});

describe('unreviewedText', () => {
  it.each([
    [0, ''],
    [1, '1 cell not reviewed'],
    [7, '7 cells not reviewed']
  ])('counts %d', (count, said) => {
    expect(unreviewedText(count, trans)).toBe(said);
  });
});

describe('ReviewRow', () => {
  const saved: [Verdict | null, string | null][] = [];
  const errors: unknown[] = [];
  const drafts = new Map<string, string>();
  let answer: () => Promise<IReview | null>;
  let row: ReviewRow;

  function create(isSession = false): ReviewRow {
    const made = new ReviewRow({
      id: 'x_1',
      isSession,
      name: 'Review of cell 1',
      words: { reviewed: 'Approve', flag: 'Flag', comment: 'Comment' },
      trans,
      drafts,
      now: () => Date.parse(APPROVED.at),
      save: (verdict, comment) => {
        saved.push([verdict, comment]);
        return answer();
      },
      onError: error => errors.push(error)
    });
    Widget.attach(made, document.body);
    return made;
  }

  function button(label: string): HTMLButtonElement {
    return Array.from(row.node.querySelectorAll('button')).find(
      ({ textContent }) => textContent?.trim() === label
    )!;
  }

  const field = () => row.node.querySelector('textarea')!;

  function press(key: string, given: object = {}): void {
    const event = { key, bubbles: true, cancelable: true, ...given };
    field().dispatchEvent(new KeyboardEvent('keydown', event));
  }

  function write(text: string): void {
    field().value = text;
    field().dispatchEvent(new Event('input'));
  }

  const turn = () => new Promise(resolve => setTimeout(resolve));

  beforeEach(() => {
    saved.length = errors.length = 0;
    drafts.clear();
    answer = async () => APPROVED;
    row = create();
  });

  afterEach(() => row.dispose());

  it('tells who said what', () => {
    row.render(APPROVED);
    expect(button('Approve').getAttribute('aria-pressed')).toBe('true');
    expect(button('Flag').getAttribute('aria-pressed')).toBe('false');
    expect(row.node.textContent).toContain('Reviewed by Ada');
    expect(row.node.textContent).toContain('As I thought');
    row.render(null);
    expect(row.node.textContent).not.toContain('Ada');
  });

  it('shows a comment without what is hidden in it', () => {
    row.render({ ...APPROVED, comment: 'not\u202e so' });
    expect(row.node.textContent).toContain('not\ufffd so');
  });

  it('keeps the comment when the verdict changes, and takes that back', async () => {
    button('Flag').click();
    await turn();
    row.render(APPROVED);
    button('Flag').click();
    await turn();
    row.render(APPROVED);
    button('Approve').click();
    await turn();
    expect(saved).toEqual([
      ['flagged', null],
      ['flagged', 'As I thought'],
      [null, 'As I thought']
    ]);
  });

  it('does not take what was said of the session for its own', () => {
    row.render({ ...APPROVED, whole_session: true });
    expect(button('Approve').getAttribute('aria-pressed')).toBe('false');
    button('Approve').click();
    expect(saved).toEqual([['approved', null]]);
    row.dispose();
    row = create(true);
    row.render({ ...APPROVED, whole_session: true });
    expect(button('Approve').getAttribute('aria-pressed')).toBe('true');
  });

  it('takes a comment, by keyboard too', async () => {
    row.render({ ...APPROVED, comment: null });
    button('Comment').click();
    expect(document.activeElement).toBe(field());
    expect(button('Comment').getAttribute('aria-expanded')).toBe('true');
    write('  Why so?\n');
    press('Enter');
    expect(saved).toEqual([]);
    press('Enter', { ctrlKey: true, isComposing: true });
    expect(saved).toEqual([]);
    press('Enter', { metaKey: true });
    await turn();
    expect(saved).toEqual([['approved', 'Why so?']]);
    expect(document.activeElement).toBe(button('Comment'));
    expect(drafts.size).toBe(0);
  });

  it('forgets a comment that is given up', () => {
    button('Comment').click();
    write('never mind');
    expect(drafts.get('x_1')).toBe('never mind');
    press('Escape');
    expect(drafts.size).toBe(0);
    expect(document.activeElement).toBe(button('Comment'));
    button('Comment').click();
    expect(field().value).toBe('');
    button('Comment').click();
    expect(button('Comment').getAttribute('aria-expanded')).toBe('false');
    button('Comment').click();
    button('Cancel').click();
    expect(saved).toEqual([]);
  });

  it('keeps what was begun when its cell is drawn anew', () => {
    button('Comment').click();
    write('half a');
    row.dispose();
    row = create();
    expect(field().value).toBe('half a');
    expect(document.activeElement).not.toBe(field());
  });

  it('keeps what is being written while others review', () => {
    button('Comment').click();
    write('half a');
    row.render(APPROVED);
    expect(field().value).toBe('half a');
    expect(document.activeElement).toBe(field());
  });

  it('keeps a comment that could not be saved', async () => {
    answer = () => Promise.reject(new Error('no'));
    button('Comment').click();
    write('half a');
    button('Save').click();
    await turn();
    expect(errors).toHaveLength(1);
    expect(field().value).toBe('half a');
    expect(drafts.get('x_1')).toBe('half a');
  });

  it('saves one thing at a time', async () => {
    let done: (review: IReview | null) => void = () => undefined;
    answer = () => new Promise(resolve => (done = resolve));
    button('Approve').click();
    button('Flag').click();
    expect(saved).toHaveLength(1);
    expect(row.node.getAttribute('aria-busy')).toBe('true');
    done(null);
    await turn();
    expect(row.node.hasAttribute('aria-busy')).toBe(false);
  });

  it('takes an answer after its end', async () => {
    button('Approve').click();
    row.dispose();
    await turn();
    expect(errors).toEqual([]);
  });
});
