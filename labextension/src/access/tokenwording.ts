/** The words for what an agent may do. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IAgentSession } from '../tokens';
import { plainName, shortText } from '../ui/notebookwording';
import { userText } from '../ui/wording';

/** By what right an agent works in a session, in a word. */
export function accessWord(
  { access, token }: IAgentSession,
  trans: TranslationBundle
): string {
  return access === 'full'
    ? trans.__('Full access')
    : shortText(plainName(token?.label ?? ''));
}

/** By what right an agent works in a session. */
export function accessText(
  { access, token, username }: IAgentSession,
  trans: TranslationBundle
): string {
  return access === 'full'
    ? trans.__(
        'Full access: the agent has the same permissions as %1',
        userText(username, trans)
      )
    : trans.__('With the agent token “%1”', plainName(token?.label ?? ''));
}
