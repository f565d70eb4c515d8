/** Lets a person decide which outputs of agents enter their notebooks. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { checkIcon, closeIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import type { IAgentExecApi } from '../tokens';
import { plainName } from '../widgets/notebookwording';
import { reporter } from './report';
import { sessionArgs, sessionCommand, watchSelected } from './selected';

/** The arguments of a decision about one execution. */
function executionArgs(trans: TranslationBundle): ReadonlyJSONObject {
  return {
    type: 'object',
    properties: {
      execution_id: {
        type: 'string',
        description: trans.__('The id of the execution')
      },
      cell_id: {
        type: 'string',
        description: trans.__('The id of the cell that was looked at')
      }
    },
    required: ['execution_id']
  };
}

/** Where an execution's cell is, if it is another than the one looked at. */
async function originalOf(
  api: IAgentExecApi,
  executionId: string,
  cellId: string
): Promise<string | null> {
  const { document } = await api.getExecution(executionId);
  return document?.cell_id && document.cell_id !== cellId
    ? document.path
    : null;
}

type Args = ReadonlyPartialJSONObject;

/** A command that decides about an execution's outputs in their notebook. */
function decision(
  api: IAgentExecApi,
  trans: TranslationBundle,
  decide: (id: string) => Promise<unknown>
): Pick<CommandRegistry.ICommandOptions, 'describedBy' | 'execute'> {
  const report = reporter(trans);
  const execute = async ({ cell_id, execution_id }: Args) => {
    const id = String(execution_id);
    const original =
      typeof cell_id === 'string' ? await originalOf(api, id, cell_id) : null;
    if (original === null) {
      await decide(id);
    } else {
      Notification.warning(
        trans.__(
          'This cell is a copy. Decide about its outputs where the agent ran it: %1',
          plainName(original)
        ),
        { autoClose: 8000 }
      );
    }
  };
  return {
    describedBy: { args: executionArgs(trans) },
    execute: args => execute(args).catch(report)
  };
}

/** The commands that accept and discard outputs. */
export const outputsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:outputs',
  description:
    'Adds commands that accept or discard the outputs of agents in notebooks.',
  autoStart: true,
  requires: [IActivityModel],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands } = app;
    const { api } = model;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    commands.addCommand(CommandIDs.acceptOutputs, {
      label: trans.__('Accept Outputs'),
      caption: trans.__(
        'Bring the original outputs into the notebook and trust them'
      ),
      icon: checkIcon,
      ...decision(api, trans, id => api.acceptOutputs(id))
    });
    commands.addCommand(CommandIDs.discardOutputs, {
      label: trans.__('Discard Outputs'),
      caption: trans.__(
        'Take the outputs out of the notebook; the history keeps them'
      ),
      icon: closeIcon,
      ...decision(api, trans, id => api.discardOutputs(id))
    });
    const command = CommandIDs.acceptAllOutputs;
    commands.addCommand(command, {
      ...sessionCommand(model, trans)(
        id => api.acceptAllOutputs(id),
        () => model.selected?.session?.target.kind === 'notebook'
      ),
      label: trans.__('Accept All Outputs From This Agent Session'),
      caption: trans.__(
        'Bring all outputs of the chosen agent session that are held back into its notebook'
      ),
      icon: checkIcon,
      describedBy: { args: sessionArgs(trans) }
    });
    watchSelected(model, () => commands.notifyCommandChanged(command));
    palette?.addItem({ command, category: trans.__('Agents') });
  }
};
