/** Provides what agents ask a person to approve, and keeps the policy. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { ApprovalsModel } from '../model/approvals';
import { keepPolicy } from '../model/policy';
import { IActivityModel, IApprovalsModel, TRANSLATION_DOMAIN } from '../tokens';
import { reporter } from './report';

/** One model for all that shows what asks; its settings are the policy. */
export const approvalsPlugin: JupyterFrontEndPlugin<IApprovalsModel> = {
  id: 'jupyter-agent-exec:approvals',
  description: 'Provides what agents ask a person to approve.',
  autoStart: true,
  provides: IApprovalsModel,
  requires: [IActivityModel],
  optional: [ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): IApprovalsModel => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const report = reporter(trans);
    const { connectionFailure, events } = app.serviceManager;
    const approvals = new ApprovalsModel(
      model.api,
      events.stream,
      connectionFailure
    );
    // It may have been shown late, and events may have been missed.
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) {
        approvals.refresh();
      }
    });
    window.addEventListener('online', () => approvals.refresh());
    const follow = async () => {
      await app.restored;
      approvals.refresh();
      const settings = await registry?.load(approvalsPlugin.id);
      if (settings) {
        keepPolicy({
          approvals,
          settings,
          onForced: kinds => {
            Notification.warning(
              trans.__(
                'What agents must ask for is set by the configuration of this server and stays as it is: %1',
                kinds.join(', ')
              ),
              { autoClose: 8000 }
            );
          },
          onError: report
        });
      }
    };
    void follow().catch(report);
    return approvals;
  }
};
