/** Tells in one line what agents have run out of sight. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandIDs, isFinal } from '../tokens';
import type { IActivityEvent, ILiveModel, Status } from '../tokens';
import { hasFailed } from '../review/next';
import { nameOf } from '../ui/wording';

/** Milliseconds without code after which agents have finished, as far as one can tell. */
export const QUIET = 10_000;

/** Milliseconds for which the line is shown; it stays among the notifications. */
const SHOWN = 15_000;

/** An execution that has ended. */
interface IEnded {
  readonly session_id: string;
  readonly execution_id: string;
  readonly status: Status;
}

/** Tell it once agents are quiet, until the user looks at one of them. */
export function tellAway(
  { commands, shell }: Pick<JupyterFrontEnd, 'commands' | 'shell'>,
  live: ILiveModel,
  trans: TranslationBundle
): void {
  let unseen: readonly IEnded[] = [];
  let shown: string | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const isInSight = (sessionId: string): boolean => {
    const { currentWidget } = shell;
    const path = live.get(sessionId)?.session.path ?? null;
    return (
      !document.hidden &&
      (live.isActive ||
        live.selected === sessionId ||
        (path !== null &&
          currentWidget instanceof NotebookPanel &&
          currentWidget.context.localPath === path))
    );
  };
  const open = ({ execution_id, session_id }: IEnded) => ({
    callback: () =>
      void commands.execute(CommandIDs.openSession, {
        execution_id,
        session_id
      })
  });
  const tell = async () => {
    if (document.hidden) {
      await live.refresh(); // events do not lead to that while nobody looks
    }
    const sessions = new Set(unseen.map(({ session_id }) => session_id));
    const [first] = sessions;
    if (!first || live.agents.some(({ session: { id } }) => sessions.has(id))) {
      return; // its next execution's end leads here again
    }
    const { agent } =
      live.get(first)?.session ?? (await live.api.getSession(first));
    const failed = unseen.filter(({ status }) => hasFailed(status));
    const who =
      sessions.size > 1
        ? trans.__('%1 agent sessions', sessions.size)
        : nameOf(agent);
    const ran = trans._n(
      '%2 ran %1 cell',
      '%2 ran %1 cells',
      unseen.length,
      who
    );
    const message =
      failed.length > 0
        ? `${ran} · ${trans.__('%1 failed', failed.length)}`
        : ran;
    const last = unseen[unseen.length - 1];
    const options = {
      autoClose: SHOWN,
      actions: [
        { label: trans.__('Show'), ...open(last) },
        ...failed
          .slice(0, 1)
          .map(each => ({ label: trans.__('Show Failed'), ...open(each) }))
      ]
    };
    if (
      shown === null ||
      !Notification.update({ id: shown, message, ...options })
    ) {
      shown = Notification.info(message, options);
    }
  };
  const look = () => {
    unseen = unseen.filter(({ session_id }) => !isInSight(session_id));
    if (unseen.length === 0 && shown !== null) {
      Notification.dismiss(shown);
      shown = null;
    }
  };
  live.heard.connect((_, event: IActivityEvent) => {
    const { action, execution_id, session_id } = event;
    const status = (event.status ?? 'queued') as Status;
    if (action === 'execution' && execution_id && isFinal(status)) {
      unseen = [...unseen, { execution_id, session_id, status }];
      look();
      clearTimeout(timer);
      timer = setTimeout(() => void tell().catch(() => undefined), QUIET);
    }
  });
  live.changed.connect(look);
  shell.currentChanged?.connect(look);
}
