/** How a review is said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IReview } from '../tokens';
import { plainName, userText } from './wording';

/** What somebody said, and who: "Reviewed by Ada". */
export function reviewText(review: IReview, trans: TranslationBundle): string {
  const name = userText(review.by, trans);
  const { verdict, whole_session: whole } = review;
  if (verdict === 'approved') {
    return whole
      ? trans.__('Reviewed with the session by %1', name)
      : trans.__('Reviewed by %1', name);
  }
  if (verdict === 'flagged') {
    return whole
      ? trans.__('Flagged with the session by %1', name)
      : trans.__('Flagged by %1', name);
  }
  return whole
    ? trans.__('Session commented on by %1', name)
    : trans.__('Commented on by %1', name);
}

/** What was said, in its lines; nothing in it is hidden or turns other text. */
export function commentText({ comment }: IReview): string {
  return (comment ?? '')
    .split(/\r\n?|\n/)
    .map(line => line.split('\t').map(plainName).join('\t'))
    .join('\n');
}

/** How many of a session's cells nobody has said anything about. */
export function unreviewedText(
  unreviewed: number,
  trans: TranslationBundle
): string {
  return unreviewed === 0
    ? ''
    : trans._n('%1 cell not reviewed', '%1 cells not reviewed', unreviewed);
}
