/** Lets a person answer what agents ask, and hold them. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { checkIcon, closeIcon, runIcon } from '@jupyterlab/ui-components';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import { CommandIDs, IApprovalsModel, TRANSLATION_DOMAIN } from '../tokens';
import type { IExecution } from '../tokens';
import { pauseIcon } from '../widgets/icons';
import { labelled } from './selected';
import { reporter } from './report';

/** What an execution asks that a command names; an error if it asks nothing. */
function named(
  approvals: IApprovalsModel,
  id: unknown,
  trans: TranslationBundle
): IExecution {
  const execution = typeof id === 'string' ? approvals.get(id) : null;
  if (!execution) {
    throw new Error(trans.__('This execution does not ask for approval.'));
  }
  return execution;
}

/** The arguments of the commands, described. */
function argumentsOf(trans: TranslationBundle) {
  const text = (description: string) => ({ type: 'string', description });
  const described = (
    properties: ReadonlyJSONObject,
    required: string[]
  ): { args: ReadonlyJSONObject } => ({
    args: { type: 'object', properties, required }
  });
  const execution_id = text(trans.__('The id of the execution that asks'));
  return {
    approve: described(
      {
        execution_id,
        source_sha256: text(
          trans.__('The SHA-256 of the source that was looked at')
        ),
        source: text(trans.__('What to run instead'))
      },
      ['execution_id', 'source_sha256']
    ),
    reject: described(
      { execution_id, reason: text(trans.__('A sentence for the agent')) },
      ['execution_id']
    ),
    grant: described(
      {
        session_id: text(trans.__('The id of the agent session')),
        minutes: {
          type: 'number',
          minimum: 0,
          maximum: 1440,
          description: trans.__('For how many minutes; 0 ends it')
        },
        label: text(trans.__('What the command is called in a menu'))
      },
      ['session_id', 'minutes']
    ),
    none: described({}, [])
  };
}

/** The commands that approve, reject, grant, pause and resume. */
export const decidingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:deciding',
  description:
    'Adds commands that answer what agents ask, and that pause all agents.',
  autoStart: true,
  requires: [IApprovalsModel],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    approvals: IApprovalsModel,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const report = reporter(trans);
    const described = argumentsOf(trans);
    commands.addCommand(CommandIDs.approve, {
      label: trans.__('Approve What an Agent Asks'),
      caption: trans.__('Let an execution run whose source was looked at'),
      icon: checkIcon,
      describedBy: described.approve,
      execute: async ({ execution_id, source, source_sha256 }) => {
        try {
          const asking = named(approvals, execution_id, trans);
          // Not the one that asks now: the one that was looked at.
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
      label: trans.__('Reject What an Agent Asks'),
      caption: trans.__('Do not let an execution run, and say why'),
      icon: closeIcon,
      describedBy: described.reject,
      execute: async ({ execution_id, reason }) => {
        try {
          const asking = named(approvals, execution_id, trans);
          await approvals.reject(
            asking,
            typeof reason === 'string' && reason ? reason : null
          );
        } catch (error) {
          report(error);
        }
      }
    });
    commands.addCommand(CommandIDs.grant, {
      label: labelled(trans.__('Approve All of an Agent Session for a Time')),
      caption: trans.__(
        'Let all that an agent session asks for run for a time'
      ),
      describedBy: described.grant,
      execute: ({ minutes, session_id }) =>
        approvals.grant(String(session_id), Number(minutes)).catch(report)
    });
    commands.addCommand(CommandIDs.pause, {
      label: trans.__('Pause All Agents'),
      caption: trans.__('Send nothing more of any agent to a kernel'),
      icon: pauseIcon,
      describedBy: described.none,
      isEnabled: () => approvals.paused === null,
      execute: () => approvals.setPaused(true).catch(report)
    });
    commands.addCommand(CommandIDs.resume, {
      label: trans.__('Let All Agents Go On'),
      caption: trans.__('End the pause of all agents'),
      icon: runIcon,
      describedBy: described.none,
      isEnabled: () => approvals.paused !== null,
      execute: () => approvals.setPaused(false).catch(report)
    });
    const category = trans.__('Agents');
    for (const command of [CommandIDs.pause, CommandIDs.resume]) {
      approvals.changed.connect(() => commands.notifyCommandChanged(command));
      palette?.addItem({ command, category });
    }
  }
};
