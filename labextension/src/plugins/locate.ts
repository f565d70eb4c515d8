/** Leads from the history to the notebook. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { Cell } from '@jupyterlab/cells';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { METADATA_KEY, readCellRecord } from '../model/cellrecord';
import { CommandIDs, TRANSLATION_DOMAIN } from '../tokens';
import { reporter } from './report';

/** Whether a cell has an id, or shows an execution. */
function isCell({ model }: Cell, cellId: unknown, executionId: unknown) {
  const record = readCellRecord(model.getMetadata(METADATA_KEY));
  return (
    model.id === cellId ||
    (record !== null &&
      (record.cell_id === cellId || record.execution_id === executionId))
  );
}

/** Show one of a notebook's cells, and choose it. */
async function showCell(
  panel: NotebookPanel,
  cellId: unknown,
  executionId: unknown
): Promise<void> {
  await panel.context.ready;
  await panel.revealed;
  const { content } = panel;
  const at = content.widgets.findIndex(each =>
    isCell(each, cellId, executionId)
  );
  if (at >= 0) {
    content.deselectAll();
    content.activeCellIndex = at;
    content.mode = 'command';
    await content.scrollToItem(at, 'smart');
    content.widgets[at].node.focus({ preventScroll: true });
  }
}

/** The command that opens a notebook at a cell. */
export const locatePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:locate',
  description: 'Adds a command that opens the notebook where an agent ran.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    translator: ITranslator | null
  ): void => {
    const { commands } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const text = (description: string) => ({ type: 'string', description });
    commands.addCommand(CommandIDs.goToCell, {
      label: trans.__('Go to the Cell in Its Notebook'),
      caption: trans.__('Open the notebook at the cell that an agent ran'),
      describedBy: {
        args: {
          type: 'object',
          properties: {
            path: text(trans.__('The path of the notebook')),
            cell_id: text(trans.__('The id of the cell')),
            execution_id: text(trans.__('The id of the execution it shows'))
          },
          required: ['path']
        }
      },
      execute: async ({ path, cell_id, execution_id }) => {
        // The one that is open, whichever drive it came from, else a new one.
        const open = notebooks.find(each => each.context.localPath === path);
        if (open) {
          app.shell.activateById(open.id);
        }
        try {
          const panel =
            open ?? (await commands.execute('docmanager:open', { path }));
          if (panel && (cell_id || execution_id)) {
            await showCell(panel as NotebookPanel, cell_id, execution_id);
          }
        } catch (error) {
          reporter(trans)(error);
        }
      }
    });
  }
};
