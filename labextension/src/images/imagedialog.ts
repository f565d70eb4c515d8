/** Shows images of agents' cells large, one at a time, and saves them. */
import { Dialog } from '@jupyterlab/apputils';
import type { CodeCell } from '@jupyterlab/cells';
import { PathExt } from '@jupyterlab/coreutils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IOutputModel } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Panel, Widget } from '@lumino/widgets';
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { element } from '../ui/elements';
import { nameImages } from '../ui/imagenames';
import { fileName } from '../ui/notebookwording';
import { cellName } from '../ui/wording';

/** An image among the outputs of an agent's cell, which may not be drawn. */
export interface IImageOutput {
  cell: CodeCell;
  output: IOutputModel;
  /** The type as which it is shown. */
  type: string;
}

/** Where an arrow key leads. */
const STEPS: Partial<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1 };

/** Show an image of a notebook, and let a user go on to others, or save one. */
export async function showImages(
  { content, context }: NotebookPanel,
  images: readonly IImageOutput[],
  place: number,
  trans: TranslationBundle
): Promise<void> {
  const body = new Panel();
  const told = new Widget({ node: element('div', '') });
  told.node.setAttribute('role', 'status');
  body.addWidget(told);
  const nameAt = () => {
    const { model } = images[place].cell;
    const record = readCellRecord(model.getMetadata(METADATA_KEY));
    const { executionCount: execution_count } = model;
    return cellName({ ...record, execution_count }, trans);
  };
  const go = (step: number) => {
    place = (place + step + images.length) % images.length;
    const { output, type } = images[place];
    const image = content.rendermime.createRenderer(type);
    void image.renderModel(output);
    body.widgets[1]?.dispose();
    body.addWidget(image);
    const at = [nameAt(), place + 1, images.length] as const;
    told.node.textContent = trans.__('%1 · image %2 of %3', ...at);
  };
  const naming = nameImages(body.node, trans);
  go(0);
  const dialog = new Dialog({
    title: trans.__('Images in %1', fileName(context.localPath)),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Close') }),
      Dialog.okButton({ label: trans.__('Save image') })
    ]
  });
  dialog.addClass('jp-AgentExecImage');
  const onKey = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step) {
      // In place of the dialog, where they lead from button to button.
      event.stopImmediatePropagation();
      event.preventDefault();
      go(step);
    }
  };
  dialog.node.addEventListener('keydown', onKey, true);
  body.node.addEventListener('click', () => go(1));
  const { button } = await dialog.launch();
  naming.disconnect();
  const image = body.node.querySelector('img');
  if (button.accept && image) {
    const notebook = PathExt.basename(context.localPath, '.ipynb');
    await save(image.src, `${notebook} ${nameAt()}`);
  }
}

/** Download an image: under a name of its own, also if the server gives another. */
async function save(address: string, name: string): Promise<void> {
  const blob = await (await fetch(address)).blob();
  const link = element('a', '');
  link.href = URL.createObjectURL(blob);
  link.download = `${name}.${blob.type.replace(/^image\/|\+.*$/g, '')}`;
  link.click();
  URL.revokeObjectURL(link.href);
}
