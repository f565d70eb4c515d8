import { nullTranslator } from '@jupyterlab/translation';
import type { IReview } from '../../tokens';
import {
  commentText,
  reviewItems,
  reviewText
} from '../../review/reviewwording';

const trans = nullTranslator.load('');

const APPROVED: IReview = {
  verdict: 'approved',
  comment: 'As I thought',
  by: 'Ada',
  at: '2026-01-02T03:04:05.000Z'
};

describe('reviewText', () => {
  it.each([
    [{}, 'Reviewed by Ada'],
    [{ verdict: 'flagged' as const }, 'Flagged by Ada'],
    [{ verdict: null }, 'Commented on by Ada']
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

describe('reviewItems', () => {
  const args = (review: IReview | null) =>
    reviewItems('x_1', review, trans).map(item => item?.args);

  it('offers to take back the verdict that was given', () => {
    const one = { execution_id: 'x_1' };
    expect(args(APPROVED)).toEqual([
      one,
      { ...one, verdict: null, isGiven: true, label: 'Mark Reviewed' },
      { ...one, verdict: 'flagged', isGiven: false, label: 'Flag' },
      one
    ]);
  });
});
