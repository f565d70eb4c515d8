/** Asks the user to approve what agents want to run. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { checkIcon, closeIcon, runIcon } from '@jupyterlab/ui-components';
import { ApprovalsModel } from '../model/approvals';
import { keepPolicy } from '../model/policy';
import {
  CommandIDs,
  IActivityModel,
  IApprovalsModel,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { IExecution } from '../tokens';
import type { ApprovalView } from '../widgets/approval';
import { Clock } from '../widgets/clock';
import { pauseIcon } from '../widgets/icons';
import { NotebookApprovals } from '../widgets/notebookapprovals';
import { labelled, reporter, takes } from './commands';

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

/** Add the commands that approve, reject, grant, pause and resume. */
function addCommands(
  { commands }: JupyterFrontEnd,
  approvals: IApprovalsModel,
  trans: TranslationBundle,
  palette: ICommandPalette | null
): void {
  const report = reporter(trans);
  commands.addCommand(CommandIDs.approve, {
    label: trans.__('Approve Agent Execution'),
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
    label: trans.__('Reject Agent Execution'),
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
  commands.addCommand(CommandIDs.grant, {
    label: labelled(trans.__('Approve All Executions of an Agent Session')),
    describedBy: takes('session_id!', 'minutes!', 'label'),
    execute: ({ minutes, session_id }) =>
      approvals.grant(String(session_id), Number(minutes)).catch(report)
  });
  commands.addCommand(CommandIDs.pause, {
    label: trans.__('Pause Agents'),
    icon: pauseIcon,
    describedBy: takes(),
    isEnabled: () => approvals.paused === null,
    execute: () => approvals.setPaused(true).catch(report)
  });
  commands.addCommand(CommandIDs.resume, {
    label: trans.__('Resume Agents'),
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

/** Show what needs approval where it would run, and add the command that leads there. */
function showInNotebooks(
  { commands, shell }: JupyterFrontEnd,
  notebooks: INotebookTracker,
  options: ApprovalView.IOptions
): void {
  const { trans } = options;
  const shown = new Map<NotebookPanel, NotebookApprovals>();
  const show = (panel: NotebookPanel) => {
    shown.set(panel, new NotebookApprovals(panel, options));
    panel.disposed.connect(() => {
      shown.get(panel)?.dispose();
      shown.delete(panel);
    });
  };
  notebooks.forEach(show);
  notebooks.widgetAdded.connect((_, panel) => show(panel));
  commands.addCommand(CommandIDs.goToProposal, {
    label: trans.__('Go to Proposed Cell in Notebook'),
    describedBy: takes('path!', 'execution_id!'),
    execute: async ({ path, execution_id }) => {
      try {
        const open = notebooks.find(each => each.context.localPath === path);
        const panel: NotebookPanel | undefined =
          open ?? (await commands.execute('docmanager:open', { path }));
        if (panel) {
          shell.activateById(panel.id);
          await panel.context.ready;
          await panel.revealed;
          await shown.get(panel)?.reveal(String(execution_id));
        }
      } catch (error) {
        reporter(trans)(error);
      }
    }
  });
}

/** One model for all that shows what waits; its settings are the policy. */
export const approvalsPlugin: JupyterFrontEndPlugin<IApprovalsModel> = {
  id: 'jupyter-agent-exec:approvals',
  description:
    'Adds the requests for approval to notebooks, and commands that approve or reject them.',
  autoStart: true,
  provides: IApprovalsModel,
  requires: [IActivityModel],
  optional: [
    ISettingRegistry,
    ITranslator,
    ICommandPalette,
    INotebookTracker,
    IEditorServices
  ],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    registry: ISettingRegistry | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    notebooks: INotebookTracker | null,
    editors: IEditorServices | null
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
    const { api } = model;
    if (notebooks && editors) {
      const options = {
        api,
        approvals,
        drafts: new Map<string, string>(),
        clock: new Clock(() => Date.now() + api.clockOffset),
        editors,
        specs: () => app.serviceManager.kernelspecs.specs,
        trans
      };
      showInNotebooks(app, notebooks, options);
    }
    return approvals;
  }
};
