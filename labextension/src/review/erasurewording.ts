/** Words for what is erased from the record. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IErasure } from '../tokens';
import { sizeText } from '../ui/wording';

/** Why nothing can be erased; null if something can. */
export function cannotErase(
  { sessions }: IErasure,
  trans: TranslationBundle
): string | null {
  if (sessions.some(each => each.payloads > 0 && !each.is_open)) {
    return null;
  }
  return sessions.some(each => each.is_open)
    ? trans.__('The session is open. Erase it after the agent has closed it.')
    : trans.__('There is nothing to erase.');
}

/** What goes, and what remains, in sentences. */
export function erasureLines(
  { sessions }: IErasure,
  trans: TranslationBundle
): string[] {
  const payloads = sessions.reduce((sum, each) => sum + each.payloads, 0);
  const bytes = sessions.reduce((sum, each) => sum + each.bytes, 0);
  return [
    trans._n(
      'Erases %1 source, output or input (%2). This cannot be undone.',
      'Erases %1 sources, outputs and inputs (%2). This cannot be undone.',
      payloads,
      sizeText(bytes)
    ),
    trans.__(
      'Copies remain: in notebooks, exports, backups and wherever the record is sent. So do the entries of who did what and when.'
    )
  ];
}
