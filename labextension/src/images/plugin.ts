/** Shows images of agents' cells large, by a click or a command. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import type { CodeCell } from '@jupyterlab/cells';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { CommandIDs, TRANSLATION_DOMAIN } from '../tokens';
import { reporter, takes } from '../ui/commands';
import type { IImageOutput } from './imagedialog';

/** The images of agents' cells, in a notebook's order. */
export function imagesOf({ content }: NotebookPanel): IImageOutput[] {
  return content.widgets
    .filter(({ model }) => readCellRecord(model.getMetadata(METADATA_KEY)))
    .filter((cell): cell is CodeCell => cell.model.type === 'code')
    .flatMap(cell => {
      const { outputs } = cell.model;
      return Array.from({ length: outputs.length }, (_, index) => {
        const output = outputs.get(index);
        const safe = output.trusted ? 'any' : 'ensure';
        const { data } = output;
        const type = content.rendermime.preferredMimeType(data, safe) ?? '';
        return { cell, output, type };
      });
    })
    .filter(({ type }) => type.startsWith('image/'));
}

/** Whether a node of the page is in the output. */
function isIn(node: Node, { cell, output }: IImageOutput): boolean {
  const { model, widgets } = cell.outputArea;
  return widgets.some(
    (each, index) => model.get(index) === output && each.node.contains(node)
  );
}

/** The command, and what a click does. */
export const imagesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:images',
  description: 'Shows images of agents’ cells large, and saves them.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const open = async (
      panel: NotebookPanel,
      isWanted: (image: IImageOutput) => boolean
    ) => {
      const images = imagesOf(panel);
      const place = images.findIndex(isWanted);
      if (place >= 0) {
        const { showImages } = await import('./imagedialog');
        await showImages(panel, images, place, trans).catch(reporter(trans));
      }
    };
    const isActive = ({ cell }: IImageOutput) => cell === notebooks.activeCell;
    app.commands.addCommand(CommandIDs.openImage, {
      label: trans.__('Enlarge Image'),
      describedBy: takes(),
      isVisible: () =>
        notebooks.currentWidget !== null &&
        imagesOf(notebooks.currentWidget).some(isActive),
      execute: async () => {
        if (notebooks.currentWidget) {
          await open(notebooks.currentWidget, isActive);
        }
      }
    });
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.openImage, category });
    const listen = (panel: NotebookPanel) =>
      panel.content.node.addEventListener('click', ({ target }) => {
        if (target instanceof HTMLImageElement) {
          void open(panel, image => isIn(target, image));
        }
      });
    notebooks.forEach(listen);
    notebooks.widgetAdded.connect((_, panel) => listen(panel));
  }
};
