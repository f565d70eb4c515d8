/** Shows images of agents' cells large, by a click or a command. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { CommandIDs } from '../tokens';
import { reporter, takes } from '../ui/commands';
import type { IImageOutput } from './imagedialog';

/** The images of a cell, if an agent ran it. */
function imagesOf(cell: Cell): IImageOutput[] {
  if (
    !(cell instanceof CodeCell) ||
    !readCellRecord(cell.model.getMetadata(METADATA_KEY))
  ) {
    return [];
  }
  const { outputs } = cell.model;
  return Array.from({ length: outputs.length }, (_, index) => {
    const output = outputs.get(index);
    const safe = output.trusted ? 'any' : 'ensure';
    const { rendermime } = cell.outputArea;
    const type = rendermime.preferredMimeType(output.data, safe) ?? '';
    return { cell, output, type };
  }).filter(({ type }) => type.startsWith('image/'));
}

/** Whether a node of the page is in the output. */
function isIn(node: Node, { cell, output }: IImageOutput): boolean {
  const { model, widgets } = cell.outputArea;
  return widgets.some(
    (each, index) => model.get(index) === output && each.node.contains(node)
  );
}

/** Add the command, and what a click does. */
export function addImages(
  { commands }: JupyterFrontEnd,
  notebooks: INotebookTracker,
  palette: ICommandPalette | null,
  trans: TranslationBundle
): void {
  const open = async (
    panel: NotebookPanel,
    isWanted: (image: IImageOutput) => boolean
  ) => {
    const images = panel.content.widgets.flatMap(imagesOf);
    const place = images.findIndex(isWanted);
    if (place >= 0) {
      const { showImages } = await import('./imagedialog');
      await showImages(panel, images, place, trans).catch(reporter(trans));
    }
  };
  const isActive = ({ cell }: IImageOutput) => cell === notebooks.activeCell;
  const command = CommandIDs.openImage;
  commands.addCommand(command, {
    label: trans.__('Enlarge Image'),
    describedBy: takes(),
    isVisible: () =>
      notebooks.activeCell !== null &&
      imagesOf(notebooks.activeCell).length > 0,
    execute: async () => {
      if (notebooks.currentWidget) {
        await open(notebooks.currentWidget, isActive);
      }
    }
  });
  palette?.addItem({ command, category: trans.__('Agents') });
  const listen = (panel: NotebookPanel) =>
    panel.content.node.addEventListener('click', ({ target }) => {
      if (target instanceof HTMLImageElement) {
        void open(panel, image => isIn(target, image));
      }
    });
  notebooks.forEach(listen);
  notebooks.widgetAdded.connect((_, panel) => listen(panel));
}
