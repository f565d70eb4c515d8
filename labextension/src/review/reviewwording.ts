/** What users think of cells. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandIDs } from '../tokens';
import type { IReview, Verdict } from '../tokens';
import type { MenuItem } from '../ui/menu';
import { plainName, userText } from '../ui/wording';

/** What somebody thinks, and who: "Reviewed by Ada". */
export function reviewText(
  { by, verdict }: IReview,
  trans: TranslationBundle
): string {
  const name = userText(by, trans);
  return verdict === 'approved'
    ? trans.__('Reviewed by %1', name)
    : verdict === 'flagged'
      ? trans.__('Flagged by %1', name)
      : trans.__('Commented on by %1', name);
}

/** A comment in its lines; nothing in it is hidden or turns other text. */
export function commentText({ comment }: IReview): string {
  return (comment ?? '')
    .split(/\r\n?|\n/)
    .map(line => line.split('\t').map(plainName).join('\t'))
    .join('\n');
}

/** What a menu offers to do; a verdict that was given is a state, and choosing it removes it. */
export function reviewItems(
  execution_id: string,
  review: IReview | null,
  trans: TranslationBundle
): MenuItem[] {
  const item = (verdict: Verdict, label: string): MenuItem => {
    const isGiven = review?.verdict === verdict;
    return {
      command: CommandIDs.review,
      args: {
        execution_id,
        verdict: isGiven ? null : verdict,
        isGiven,
        label
      }
    };
  };
  return [
    { command: CommandIDs.undo, args: { execution_id } },
    item('approved', trans.__('Mark Reviewed')),
    item('flagged', trans.__('Flag')),
    { command: CommandIDs.comment, args: { execution_id } }
  ];
}
