/** Asks a person for the server's passphrase when a decision needs it. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { IActivityModel, TRANSLATION_DOMAIN } from '../tokens';

/** The question for the passphrase, whatever it is that is decided. */
export const unlockPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:unlock',
  description:
    "Asks a person for the server's passphrase before a decision about agents.",
  autoStart: true,
  requires: [IActivityModel],
  optional: [ITranslator],
  activate: (
    _app: JupyterFrontEnd,
    model: IActivityModel,
    translator: ITranslator | null
  ): void => {
    const { api } = model;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    api.askPassphrase = async () => {
      const { askPassphrase } = await import('../widgets/passphrase');
      return askPassphrase(api, trans);
    };
  }
};
