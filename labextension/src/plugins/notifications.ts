/** Notifies the user of what needs approval. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import {
  IActivityModel,
  IApprovalsModel,
  isProposed,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { IExecution } from '../tokens';
import { askedText } from '../widgets/atworkwording';
import { showAsking } from '../widgets/showasking';

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
    const { shell } = app;
    /** Whether it is in the notebook in front. */
    const isInFront = (execution: IExecution) =>
      isProposed(execution) &&
      shell.currentWidget instanceof NotebookPanel &&
      shell.currentWidget.context.localPath === execution.document?.path;
    /** Notifications, or null, by the ids of the executions. */
    const known = new Map<string, string | null>();
    let settings: ISettingRegistry.ISettings | null = null;
    const notify = (execution: IExecution) => {
      return Notification.warning(askedText(execution, trans), {
        actions: [
          {
            label: trans.__('Show'),
            callback: () => showAsking(execution, execute)
          }
        ],
        autoClose: SHOWN
      });
    };
    const look = () => {
      const isOn = settings?.composite.approval !== false;
      const wanted = isOn ? approvals.asking : [];
      // A notification would lie above what it tells of.
      const unseen = wanted.filter(
        execution => !model.isActive && !isInFront(execution)
      );
      for (const [id, notification] of Array.from(known)) {
        if (notification !== null && !unseen.some(each => each.id === id)) {
          Notification.dismiss(notification);
          known.set(id, null);
        }
        if (!wanted.some(each => each.id === id)) {
          known.delete(id);
        }
      }
      for (const execution of wanted) {
        if (!known.has(execution.id)) {
          const isSeen = !unseen.includes(execution);
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
      shell.currentChanged?.connect(look);
      look();
    };
    void follow();
  }
};
