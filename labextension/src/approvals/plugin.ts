/** Asks the user to approve what agents want to run. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { checkIcon, closeIcon, runIcon } from '@jupyterlab/ui-components';
import { ApprovalsModel } from '../live/approvals';
import { keepPolicy } from './policy';
import {
  CommandIDs,
  IActivityModel,
  IApprovalsModel,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { IExecution } from '../tokens';
import { pauseIcon } from '../ui/icons';
import { labelled, reporter, takes } from '../ui/commands';

/** The execution with an id that waits for approval; an error if it does not. */
function waiting(
  approvals: IApprovalsModel,
  id: unknown,
  trans: TranslationBundle
): IExecution {
  const execution = typeof id === 'string' ? approvals.get(id) : null;
  if (!execution) {
    throw new Error(trans.__('This cell does not need approval.'));
  }
  return execution;
}

/** Add the commands that approve, reject, withdraw, pause and resume. */
function addCommands(
  { commands }: JupyterFrontEnd,
  approvals: IApprovalsModel,
  trans: TranslationBundle,
  palette: ICommandPalette | null
): void {
  const report = reporter(trans);
  commands.addCommand(CommandIDs.approve, {
    label: trans.__('Approve'),
    icon: checkIcon,
    describedBy: takes('execution_id!', 'source_sha256!', 'source'),
    execute: async ({ execution_id, source, source_sha256 }) => {
      try {
        const asking = waiting(approvals, execution_id, trans);
        // Not the source that waits now: the one that the user looked at.
        const seen = { ...asking, source_sha256: String(source_sha256) };
        await approvals.approve(
          seen,
          typeof source === 'string' ? source : undefined
        );
      } catch (error) {
        report(error);
      }
    }
  });
  commands.addCommand(CommandIDs.reject, {
    label: trans.__('Reject'),
    icon: closeIcon,
    describedBy: takes('execution_id!', 'reason'),
    execute: async ({ execution_id, reason }) => {
      try {
        await approvals.reject(
          waiting(approvals, execution_id, trans),
          typeof reason === 'string' && reason ? reason : null
        );
      } catch (error) {
        report(error);
      }
    }
  });
  commands.addCommand(CommandIDs.withdrawGrant, {
    label: labelled(trans.__('Let the agent ask again')),
    describedBy: takes('session_id!', 'label'),
    execute: ({ session_id }) =>
      approvals.withdraw(String(session_id)).catch(report)
  });
  commands.addCommand(CommandIDs.pause, {
    label: trans.__('Pause agents'),
    icon: pauseIcon,
    describedBy: takes(),
    isEnabled: () => approvals.paused === null,
    execute: () => approvals.setPaused(true).catch(report)
  });
  commands.addCommand(CommandIDs.resume, {
    label: trans.__('Resume agents'),
    icon: runIcon,
    describedBy: takes(),
    isEnabled: () => approvals.paused !== null,
    execute: () => approvals.setPaused(false).catch(report)
  });
  for (const command of [CommandIDs.pause, CommandIDs.resume]) {
    approvals.changed.connect(() => commands.notifyCommandChanged(command));
    palette?.addItem({ command, category: trans.__('Agents') });
  }
}

/** One model for all that shows what waits; its settings are the policy. */
export const approvalsPlugin: JupyterFrontEndPlugin<IApprovalsModel> = {
  id: 'jupyter-agent-exec:approvals',
  description:
    'Keeps what needs approval, and adds commands that approve or reject it.',
  autoStart: true,
  provides: IApprovalsModel,
  requires: [IActivityModel],
  optional: [ISettingRegistry, ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    registry: ISettingRegistry | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
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
    model.refreshed.connect(() => approvals.refresh());
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
                'The server’s configuration fixes the approval policy for %1. You cannot change it here.',
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
    addCommands(app, approvals, trans, palette);
    return approvals;
  }
};
