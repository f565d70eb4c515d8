/** Notifies of what needs the person. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Incidents } from '../model/incidents';
import type { IIncident } from '../model/incidents';
import {
  CommandIDs,
  IActivityModel,
  IAgentsAtWork,
  IApprovalsModel,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { Execute, IExecution } from '../tokens';
import {
  askedText,
  diedText,
  stoppedElsewhereText
} from '../widgets/atworkwording';
// Needed at once: what asks already when the page opens is counted too.
// eslint-disable-next-line jupyter/prefer-lazy-imports
import { BrowserNotices, permission, TitleCount } from '../widgets/background';

/** Milliseconds for which it is shown that an agent asks; the list keeps it. */
const ASKED_SHOWN = 15_000;

/** Milliseconds for which it is shown that somebody stopped an agent. */
const STOPPED_SHOWN = 15_000;

/** What can be switched, as the settings name it. */
type Switch = 'approval' | 'kernelDied' | 'stopped';

/** Makes notifications, and takes back those that need nobody any more. */
class Notifier {
  /**
   * @param _incidents - What happens that was not foreseen.
   * @param _trans - Translates what is said.
   * @param _execute - Runs commands.
   */
  constructor(
    private readonly _incidents: Incidents,
    private readonly _trans: TranslationBundle,
    private readonly _execute: Execute
  ) {
    this._incidents.happened.connect(this._onHappened, this);
  }

  /**
   * Show what asks, each once, and nothing that asks no more.
   *
   * @param isSeen - Whether something else on the page tells of it.
   */
  follow(wanted: readonly IExecution[], isSeen: boolean): void {
    for (const [id, notification] of Array.from(this._asking)) {
      const isWanted = wanted.some(each => each.id === id);
      if (notification !== null && (isSeen || !isWanted)) {
        Notification.dismiss(notification);
        this._asking.set(id, null);
      }
      if (!isWanted) {
        this._asking.delete(id);
      }
    }
    for (const execution of wanted) {
      if (!this._asking.has(execution.id)) {
        const notification = isSeen ? null : this._notify(execution);
        this._asking.set(execution.id, notification);
      }
    }
  }

  /** Say that an execution asks. */
  private _notify(execution: IExecution): string {
    const text = askedText(execution, this._trans);
    const actions = [this._action(this._trans.__('Review'), execution)];
    return Notification.warning(text, { actions, autoClose: ASKED_SHOWN });
  }

  /** Something unexpected has happened. */
  private _onHappened(_: Incidents, { by, execution, kind }: IIncident): void {
    const trans = this._trans;
    const actions = [this._action(trans.__('Show'), execution)];
    if (kind === 'died') {
      const text = diedText(execution, trans);
      Notification.error(text, { actions, autoClose: false });
    } else {
      const text = stoppedElsewhereText(execution, by, trans);
      Notification.info(text, { actions, autoClose: STOPPED_SHOWN });
    }
  }

  /** A button that leads to an execution. */
  private _action(
    label: string,
    { id, session_id }: IExecution
  ): Notification.IAction {
    const args = { session_id, execution_id: id };
    return {
      label,
      callback: () => void this._execute(CommandIDs.openPanel, args)
    };
  }

  /** The notifications of what asks, or null, by the id of the execution. */
  private readonly _asking = new Map<string, string | null>();
}

/** Let the browser notify what asks, once a person has switched that on. */
function notifyInBackground(
  settings: ISettingRegistry.ISettings,
  approvals: IApprovalsModel,
  execute: Execute,
  trans: TranslationBundle
): void {
  const notices = new BrowserNotices(trans, ({ id, session_id }) => {
    const args = { session_id, execution_id: id };
    void execute(CommandIDs.openPanel, args);
  });
  const isOn = () => settings.composite.browser === true;
  const look = () => notices.follow(isOn() ? approvals.asking : []);
  let wasOn = isOn();
  settings.changed.connect(() => {
    if (isOn() && !wasOn) {
      askPermission(trans);
    }
    wasOn = isOn();
    look();
  });
  approvals.changed.connect(look);
  look();
}

/** Say what the browser still needs; it asks a person only after a click. */
function askPermission(trans: TranslationBundle): void {
  if (permission() === 'denied') {
    Notification.warning(
      trans.__('Your browser blocks notifications of this page.')
    );
  } else if (permission() === 'default') {
    const callback = () => void window.Notification.requestPermission();
    Notification.info(trans.__('Your browser has to allow notifications.'), {
      actions: [{ label: trans.__('Allow'), callback }],
      autoClose: false
    });
  }
}

/** Notifications of JupyterLab's own. */
export const notificationsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:notifications',
  description: 'Notifies you when an agent needs your attention.',
  autoStart: true,
  requires: [IActivityModel, IAgentsAtWork],
  optional: [IApprovalsModel, ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    atWork: IAgentsAtWork,
    approvals: IApprovalsModel | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const execute = app.commands.execute.bind(app.commands);
    if (approvals) {
      const title = new TitleCount();
      approvals.changed.connect(() => title.show(approvals.asking.length));
      title.show(approvals.asking.length);
    }
    const follow = (settings: ISettingRegistry.ISettings | null) => {
      const isOn = (name: Switch) => settings?.composite[name] !== false;
      const isWanted = (kind: Incidents.Kind) =>
        isOn(kind === 'died' ? 'kernelDied' : 'stopped');
      const notifier = new Notifier(
        new Incidents(model.api, atWork, isWanted),
        trans,
        execute
      );
      if (approvals) {
        // The panel lists what asks, and a notification would lie above it.
        const look = () =>
          notifier.follow(
            isOn('approval') ? approvals.asking : [],
            model.isActive
          );
        settings?.changed.connect(look);
        approvals.changed.connect(look);
        if (settings) {
          notifyInBackground(settings, approvals, execute, trans);
        }
        model.changed.connect(look); // also when the panel comes into sight
        look();
      }
    };
    // Without settings that can be read, all is notified.
    void Promise.resolve(registry?.load(notificationsPlugin.id) ?? null)
      .catch(() => null)
      .then(follow);
  }
};
