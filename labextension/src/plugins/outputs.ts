/** Lets a person decide which outputs of agents enter their notebooks. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { checkIcon, closeIcon, undoIcon } from '@jupyterlab/ui-components';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import { decision, sessionDecision } from './decisions';
import { watchSelected } from './selected';

/** The commands that accept and discard outputs, and take that back. */
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
    const undo = (id: string) => api.restoreOutputs(id);
    commands.addCommand(CommandIDs.acceptOutputs, {
      label: trans.__('Accept Outputs'),
      caption: trans.__(
        'Bring the original outputs into the notebook and trust them'
      ),
      icon: checkIcon,
      ...decision(api, trans, {
        decide: id => api.acceptOutputs(id),
        undo,
        said: trans.__('Outputs accepted')
      })
    });
    commands.addCommand(CommandIDs.discardOutputs, {
      label: trans.__('Discard Outputs'),
      caption: trans.__(
        'Take the outputs out of the notebook; the history keeps them'
      ),
      icon: closeIcon,
      ...decision(api, trans, {
        decide: id => api.discardOutputs(id),
        undo,
        said: trans.__('Outputs discarded')
      })
    });
    commands.addCommand(CommandIDs.restoreOutputs, {
      label: trans.__('Take Back the Decision About Outputs'),
      caption: trans.__(
        'Let the outputs in the notebook be as they were before the last decision'
      ),
      icon: undoIcon,
      ...decision(api, trans, { decide: undo, undo: null, said: '' })
    });
    commands.addCommand(CommandIDs.acceptAllOutputs, {
      label: trans.__('Accept All Outputs From This Agent Session'),
      caption: trans.__(
        'Bring all outputs of the chosen agent session that are held back into its notebook'
      ),
      icon: checkIcon,
      ...sessionDecision(model, trans, {
        decide: id => api.acceptAllOutputs(id),
        undo,
        said: cells =>
          trans._n(
            'Outputs of %1 cell accepted',
            'Outputs of %1 cells accepted',
            cells
          ),
        nothing: trans.__('No outputs are held back')
      })
    });
    commands.addCommand(CommandIDs.discardAllOutputs, {
      label: trans.__('Discard All Outputs From This Agent Session'),
      caption: trans.__(
        'Take all outputs of the chosen agent session that nobody has decided on out of its notebook'
      ),
      icon: closeIcon,
      ...sessionDecision(model, trans, {
        decide: id => api.discardAllOutputs(id),
        undo,
        said: cells =>
          trans._n(
            'Outputs of %1 cell discarded',
            'Outputs of %1 cells discarded',
            cells
          ),
        nothing: trans.__('No outputs are there to be discarded')
      })
    });
    const all = [CommandIDs.acceptAllOutputs, CommandIDs.discardAllOutputs];
    watchSelected(model, () =>
      all.forEach(id => commands.notifyCommandChanged(id))
    );
    const category = trans.__('Agents');
    all.forEach(command => palette?.addItem({ command, category }));
  }
};
