/** Provides the model of agent activity, and the commands that review it. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { AgentExecApi } from '../api/client';
import { LiveModel } from '../live/live';
import { ILiveModel, TRANSLATION_DOMAIN } from '../tokens';
import { guardLinks } from '../ui/links';
import { reporter } from '../ui/commands';
import { addReviewCommands } from '../review/commands';

/** One model for all that shows or controls agent activity. */
export const modelPlugin: JupyterFrontEndPlugin<ILiveModel> = {
  id: 'jupyter-agent-exec:model',
  description:
    'Provides the model of agent activity on this server, and commands that review it.',
  autoStart: true,
  provides: ILiveModel,
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator | null
  ): ILiveModel => {
    const { connectionFailure, events, serverSettings, user } =
      app.serviceManager;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const api = new AgentExecApi(serverSettings);
    api.askPassphrase = async () => {
      const { askPassphrase } = await import('../access/passphrase');
      return askPassphrase(api, trans);
    };
    guardLinks(trans, reporter(trans));
    const live = new LiveModel(api, events.stream);
    const refresh = () => void live.refresh();
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) {
        refresh();
      }
    });
    window.addEventListener('online', refresh);
    connectionFailure.connect(refresh);
    void app.restored.then(refresh);
    void user.ready.then(async () => {
      const { ownNames } = await import('../ui/wording');
      const { display_name, name, username } = user.identity ?? {};
      [display_name, name, username].forEach(each => {
        if (each) {
          ownNames.add(each);
        }
      });
    });
    addReviewCommands(app, live, trans);
    return live;
  }
};
