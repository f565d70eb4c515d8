/** Notifies the user of what waits for them. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { ILiveModel, TRANSLATION_DOMAIN } from '../tokens';
import { askedText, proposingText } from '../atwork/atworkwording';
import { askedIn, showAsking, showProposed } from './navigation';

/** Milliseconds for which a notification is shown; the panel lists the rest. */
const SHOWN = 15_000;

/** Milliseconds until what asks has its place in a notebook. */
const PLACING = 500;

/** Whether something of what an execution asks is in view. */
function isShown(notebook: HTMLElement, executionId: string): boolean {
  const card = notebook.querySelector(`[data-asks="${executionId}"]`);
  const { bottom = 0, top = 0 } = card?.getBoundingClientRect() ?? {};
  const view = notebook.getBoundingClientRect();
  return bottom > view.top && top < view.bottom;
}

/** What waits for the user. */
interface IWaiting {
  /** Of what is asked, or of the session that proposes changes. */
  id: string;
  /** The execution that asks at its cell; null for what the notebook's head tells. */
  asked: string | null;
  sessionId: string;
  text: string;
  /** The notebook in which it is shown; null for its session's document. */
  path: string | null;
  show: () => void;
}

/** Notifications of JupyterLab's own. */
export const notificationsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:notifications',
  description:
    'Notifies you when an agent’s code needs your approval or input, or it proposes changes.',
  autoStart: true,
  requires: [ILiveModel],
  optional: [ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    live: ILiveModel,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const execute = app.commands.execute.bind(app.commands);
    const { shell } = app;
    const waiting = (): IWaiting[] => [
      ...[...live.asking, ...live.inputs].map(execution => ({
        asked: execution.id,
        // One execution may ask for input more than once.
        id: `${execution.id} ${execution.input?.asked_at ?? ''}`,
        sessionId: execution.session_id,
        text: askedText(execution, trans),
        path: askedIn(execution),
        show: () => showAsking(execution, execute)
      })),
      ...live.proposing.map(session => ({
        asked: null,
        id: session.id,
        sessionId: session.id,
        text: proposingText(session, trans),
        path: session.path,
        show: () => showProposed(session, execute)
      }))
    ];
    /** Whether it is in view, in the document in front. */
    const isInView = ({ asked, path, sessionId }: IWaiting) => {
      const { currentWidget: front } = shell;
      return path === null
        ? live.selected === sessionId
        : front instanceof NotebookPanel &&
            front.context.localPath === path &&
            (asked === null || isShown(front.content.node, asked));
    };
    /** Notifications, or null, by ids of what waits. */
    const known = new Map<string, string | null>();
    let settings: ISettingRegistry.ISettings | null = null;
    const notify = ({ show, text }: IWaiting) =>
      Notification.warning(text, {
        actions: [{ label: trans.__('Show'), callback: show }],
        autoClose: SHOWN
      });
    const look = () => {
      const isOn = settings?.composite.approval !== false;
      const wanted = isOn ? waiting() : [];
      // A notification would lie above what it tells of.
      const unseen = wanted.filter(each => !live.isActive && !isInView(each));
      for (const [id, notification] of Array.from(known)) {
        if (notification !== null && !unseen.some(each => each.id === id)) {
          Notification.dismiss(notification);
          known.set(id, null);
        }
        if (!wanted.some(each => each.id === id)) {
          known.delete(id);
        }
      }
      for (const each of wanted) {
        if (!known.has(each.id)) {
          known.set(each.id, unseen.includes(each) ? notify(each) : null);
        }
      }
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const lookSoon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        look();
      }, PLACING);
    };
    const follow = async () => {
      // Without settings that can be read, all is notified.
      settings =
        (await registry?.load(notificationsPlugin.id).catch(() => null)) ??
        null;
      settings?.changed.connect(look);
      live.changed.connect(lookSoon); // also when the panel comes into sight
      shell.currentChanged?.connect(look);
      look();
    };
    void follow();
  }
};
