/** Asks the user to approve what agents want to run. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { checkIcon, closeIcon, runIcon } from '@jupyterlab/ui-components';
import { CommandIDs, ILiveModel, TRANSLATION_DOMAIN } from '../tokens';
import { pauseIcon } from '../ui/icons';
import { labelled, reporter, takes } from '../ui/commands';

/** Add the commands that approve, reject, withdraw and pause. */
function addCommands(
  { commands }: JupyterFrontEnd,
  live: ILiveModel,
  trans: TranslationBundle,
  palette: ICommandPalette | null
): void {
  const report = reporter(trans);
  const { api } = live;
  commands.addCommand(CommandIDs.approve, {
    label: trans.__('Approve'),
    icon: checkIcon,
    describedBy: takes('execution_id!', 'source_sha256!', 'source'),
    // Not the source that waits now: the one that the user looked at.
    execute: ({ execution_id, source, source_sha256 }) =>
      live
        .settle(
          api.approve(
            String(execution_id),
            String(source_sha256),
            typeof source === 'string' ? source : undefined
          )
        )
        .catch(report)
  });
  commands.addCommand(CommandIDs.reject, {
    label: trans.__('Reject'),
    icon: closeIcon,
    describedBy: takes('execution_id!', 'reason'),
    execute: ({ execution_id, reason }) =>
      live
        .settle(
          api.reject(String(execution_id), reason ? String(reason) : null)
        )
        .catch(report)
  });
  commands.addCommand(CommandIDs.withdrawGrant, {
    label: labelled(trans.__('Let the Agent Ask Again')),
    describedBy: takes('session_id!', 'label'),
    execute: ({ session_id }) =>
      live.settle(api.withdrawGrant(String(session_id))).catch(report)
  });
  const isPaused = () => Boolean(live.now?.paused);
  const command = CommandIDs.pause;
  commands.addCommand(command, {
    label: () =>
      isPaused() ? trans.__('Resume Agents') : trans.__('Pause Agents'),
    icon: () => (isPaused() ? runIcon : pauseIcon),
    describedBy: takes(),
    execute: () => live.settle(api.setPaused(!isPaused())).catch(report)
  });
  live.changed.connect(() => commands.notifyCommandChanged(command));
  palette?.addItem({ command, category: trans.__('Agents') });
}

/** The commands that decide about what waits. */
export const approvalsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:approvals',
  description: 'Adds commands that approve or reject what needs approval.',
  autoStart: true,
  requires: [ILiveModel],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    live: ILiveModel,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    addCommands(app, live, trans, palette);
  }
};
