/** Notifies the user of what needs approval. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import {
  CommandIDs,
  IActivityModel,
  IApprovalsModel,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { IExecution } from '../tokens';
import { askedText } from '../widgets/atworkwording';

/** Milliseconds for which a notification is shown; the panel lists the rest. */
const SHOWN = 15_000;

/** Notifications of JupyterLab's own. */
export const notificationsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:notifications',
  description: 'Notifies you when an agent’s code needs your approval.',
  autoStart: true,
  requires: [IActivityModel, IApprovalsModel],
  optional: [ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    approvals: IApprovalsModel,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const execute = app.commands.execute.bind(app.commands);
    /** Notifications, or null, by the ids of the executions. */
    const known = new Map<string, string | null>();
    let settings: ISettingRegistry.ISettings | null = null;
    const notify = (execution: IExecution) => {
      const { id, session_id } = execution;
      const args = { session_id, execution_id: id };
      return Notification.warning(askedText(execution, trans), {
        actions: [
          {
            label: trans.__('Show'),
            callback: () => void execute(CommandIDs.openPanel, args)
          }
        ],
        autoClose: SHOWN
      });
    };
    const look = () => {
      const isOn = settings?.composite.approval !== false;
      const wanted = isOn ? approvals.asking : [];
      // The panel lists what needs approval: a notification would lie above it.
      const isSeen = model.isActive;
      for (const [id, notification] of Array.from(known)) {
        const isWanted = wanted.some(each => each.id === id);
        if (notification !== null && (isSeen || !isWanted)) {
          Notification.dismiss(notification);
          known.set(id, null);
        }
        if (!isWanted) {
          known.delete(id);
        }
      }
      for (const execution of wanted) {
        if (!known.has(execution.id)) {
          known.set(execution.id, isSeen ? null : notify(execution));
        }
      }
    };
    const follow = async () => {
      // Without settings that can be read, all is notified.
      settings =
        (await registry?.load(notificationsPlugin.id).catch(() => null)) ??
        null;
      settings?.changed.connect(look);
      approvals.changed.connect(look);
      model.changed.connect(look); // also when the panel comes into sight
      look();
    };
    void follow();
  }
};
