/** Where a person types the server's passphrase. */
import { InputDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ApiError } from '../api/errors';
import type { IAgentExecApi } from '../tokens';
import { errorText } from '../ui/wording';

/** Ask for the passphrase until it is the right one; false if they give up. */
export async function askPassphrase(
  api: Pick<IAgentExecApi, 'unlock'>,
  trans: TranslationBundle
): Promise<boolean> {
  const why = trans.__(
    'Enter the passphrase of this server to make this decision. It stays valid on this page for 10 minutes. Do not save it in the browser: code that runs as you could read it there.'
  );
  for (let label = why; ;) {
    const { value } = await InputDialog.getPassword({
      title: trans.__('Passphrase Required'),
      label,
      okLabel: trans.__('Unlock')
    });
    if (!value) {
      return false;
    }
    try {
      await api.unlock(value);
      return true;
    } catch (error) {
      const isWrong =
        error instanceof ApiError && error.code === 'passphrase_wrong';
      label = isWrong ? trans.__('Wrong passphrase.') : errorText(error, trans);
    }
  }
}
