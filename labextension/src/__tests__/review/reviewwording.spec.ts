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

describe('reviewItems', () => {
  const args = (...given: Parameters<typeof reviewItems>) =>
    reviewItems(...given).map(item => item?.args);

  it('offers to take back the verdict that was given', () => {
    const one = { execution_id: 'x_1' };
    expect(args(one, APPROVED, trans)).toEqual([
      { ...one, verdict: null, isGiven: true, label: 'Reviewed' },
      { ...one, verdict: 'flagged', isGiven: false, label: 'Flag' },
      { ...one, label: 'Comment…' }
    ]);
  });

  it('names what it does, and not what is so', () => {
    const labels = (...given: Parameters<typeof reviewItems>) =>
      args(...given).map(each => each?.label);
    expect(labels({ execution_id: 'x_1' }, null, trans)).toEqual([
      'Mark reviewed',
      'Flag',
      'Comment…'
    ]);
    const flagged = { ...APPROVED, verdict: 'flagged' as const };
    expect(labels({ session_id: 's_1' }, flagged, trans)).toEqual([
      'Mark all reviewed',
      'Flagged',
      'Comment…'
    ]);
  });

  it('takes what is so with the session for no verdict of its own', () => {
    const review = { ...APPROVED, whole_session: true };
    const [cell] = args({ execution_id: 'x_1' }, review, trans);
    expect(cell).toMatchObject({ verdict: 'approved', isGiven: false });
    const [session] = args({ session_id: 's_1' }, review, trans);
    expect(session).toMatchObject({ verdict: null, isGiven: true });
  });
});
