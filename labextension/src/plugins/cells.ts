/** Lets a person take agents' cells out of their notebooks. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { deleteIcon, undoIcon } from '@jupyterlab/ui-components';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import { decision, sessionDecision } from './decisions';
import { watchSelected } from './selected';

/** The commands that discard agents' cells, and put them back. */
export const cellsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:cells',
  description:
    'Adds commands that take the cells of agents out of notebooks, and put them back.',
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
    const undo = (id: string) => api.restoreCell(id);
    commands.addCommand(CommandIDs.discardCell, {
      label: trans.__('Discard Cell'),
      caption: trans.__(
        'Take the agent’s cell out of the notebook; the history keeps it'
      ),
      icon: deleteIcon,
      ...decision(api, trans, {
        decide: id => api.discardCell(id),
        undo,
        said: trans.__('Cell discarded')
      })
    });
    commands.addCommand(CommandIDs.restoreCell, {
      label: trans.__('Put the Cell Back'),
      caption: trans.__(
        'Put an agent’s cell that was discarded back to where it was'
      ),
      icon: undoIcon,
      ...decision(api, trans, { decide: undo, undo: null, said: '' })
    });
    const command = CommandIDs.discardAllCells;
    commands.addCommand(command, {
      label: trans.__('Discard All Cells From This Agent Session'),
      caption: trans.__(
        'Take all cells of the chosen agent session that are as it left them out of its notebook'
      ),
      icon: deleteIcon,
      ...sessionDecision(model, trans, {
        decide: id => api.discardAllCells(id),
        undo,
        said: cells =>
          trans._n('%1 cell discarded', '%1 cells discarded', cells),
        nothing: trans.__('No cell is there as the agent left it')
      })
    });
    watchSelected(model, () => commands.notifyCommandChanged(command));
    palette?.addItem({ command, category: trans.__('Agents') });
  }
};
