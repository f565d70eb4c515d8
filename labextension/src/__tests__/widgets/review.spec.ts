import { nullTranslator } from '@jupyterlab/translation';
import type { IReview, Verdict } from '../../tokens';
import { commentText, ReviewRow, reviewText } from '../../widgets/review';

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
    [{ whole_session: true }, 'Reviewed by Ada (whole session)'],
    [{ verdict: 'flagged' as const }, 'Flagged by Ada'],
    [
      { verdict: 'flagged' as const, whole_session: true },
      'Flagged by Ada (whole session)'
    ],
    [{ verdict: null }, 'Commented on by Ada'],
    [
      { verdict: null, whole_session: true },
      'Commented on by Ada (whole session)'
    ]
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

describe('ReviewRow', () => {
  const executed: unknown[] = [];

  function create(isSession = false) {
    executed.length = 0;
    const row = new ReviewRow({
      subject: { execution_id: 'x_1' },
      isSession,
      name: 'Review of cell 1',
      trans,
      execute: async (command, args) => {
        executed.push([command, args]);
      }
    });
    const button = (label: string) =>
      Array.from(row.node.querySelectorAll('button')).find(
        ({ textContent }) => textContent?.trim() === label
      )!;
    return { row, button };
  }

  it('shows a review, and takes a verdict back', () => {
    const { row, button } = create();
    button('Reviewed').click();
    row.render(APPROVED);
    expect(button('Reviewed').getAttribute('aria-pressed')).toBe('true');
    expect(row.node.textContent).toContain('Reviewed by Ada');
    expect(row.node.textContent).toContain('As I thought');
    button('Reviewed').click();
    button('Flag').click();
    button('Comment').click();
    const review = (verdict: Verdict | null) => [
      'agent-exec:review',
      { execution_id: 'x_1', verdict }
    ];
    expect(executed).toEqual([
      review('approved'),
      review(null),
      review('flagged'),
      ['agent-exec:comment', { execution_id: 'x_1' }]
    ]);
  });

  it('takes what is so with the session for no verdict of its own', () => {
    const { row, button } = create();
    row.render({ ...APPROVED, whole_session: true });
    expect(button('Reviewed').getAttribute('aria-pressed')).toBe('false');
    const whole = create(true);
    whole.row.render({ ...APPROVED, whole_session: true });
    const pressed = whole.button('All reviewed').getAttribute('aria-pressed');
    expect(pressed).toBe('true');
  });
});
