/** Lists open agent sessions among all that runs, and closes them. */
import type { IRunningSessions } from '@jupyterlab/running';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { CommandIDs } from '../tokens';
import type { Execute, IAgentSession, ILiveModel } from '../tokens';
import { reporter } from '../ui/commands';
import { activityIcon } from '../ui/icons';
import { targetText, titleText, whoText } from '../ui/wording';

/** A section of "Running Terminals and Kernels" with the open agent sessions. */
export function createRunning(
  live: ILiveModel,
  execute: Execute,
  trans: TranslationBundle
): IRunningSessions.IManager {
  const runningChanged = new Signal<object, unknown>(live);
  live.changed.connect(() => runningChanged.emit(null));
  const close = ({ id }: IAgentSession) =>
    live.api.closeSession(id).catch(reporter(trans));
  return {
    name: trans.__('Agent sessions'),
    running: () =>
      live.sessions.map(session => ({
        icon: () => activityIcon,
        label: () => titleText(session),
        labelTitle: () =>
          [whoText(session, trans), targetText(session, trans)].join('\n'),
        open: () =>
          void execute(CommandIDs.openSession, { session_id: session.id }),
        shutdown: () => void close(session)
      })),
    refreshRunning: () => void live.refresh(),
    runningChanged,
    shutdownAll: () => void Promise.all(live.sessions.map(close)),
    shutdownLabel: trans.__('Close'),
    shutdownAllLabel: trans.__('Close All'),
    shutdownAllConfirmationText: trans.__(
      'Close all agent sessions? Their scratch kernels end, with all variables.'
    )
  };
}
