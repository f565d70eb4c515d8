/** Asks for the reason why an agent does not get what it asks for. */
import { InputDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

/** Characters that the server takes. */
const LONGEST = 5000;

/** Ask for it: it may be empty, and is null if nothing is to be rejected after all. */
export async function askReason(
  trans: TranslationBundle
): Promise<string | null> {
  const { value } = await InputDialog.getText({
    title: trans.__('Reject'),
    label: trans.__(
      'Reason for the agent (optional, up to %1 characters)',
      LONGEST
    ),
    pattern: `.{0,${LONGEST}}`,
    okLabel: trans.__('Reject')
  });
  return value?.trim() ?? null;
}
