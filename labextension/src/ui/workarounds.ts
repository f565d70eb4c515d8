/**
 * What JupyterLab has no public way for: each says why it is needed.
 *
 * `__tests__/ui/workarounds.spec.ts` fails when one of them works no longer,
 * or is needed no longer.
 */
import type {
  Notebook,
  NotebookViewModel,
  StaticNotebook
} from '@jupyterlab/notebook';
import { MessageLoop } from '@lumino/messaging';
import type { IMessageHandler, Message } from '@lumino/messaging';

/**
 * JupyterLab's own model of where a notebook's cells are.
 *
 * In windowing mode `full` it decides, and what is drawn follows some frames
 * later, with cells that are there only to be measured: what stands where
 * cannot be seen, and would not stay where it was put. It is protected, for
 * those who extend a notebook; nothing public tells the same. No upstream issue
 * is known.
 */
export function cellPlaces(notebook: StaticNotebook): NotebookViewModel {
  return notebook['viewModel'];
}

/**
 * Change cells of a notebook that JupyterLab has not drawn to its end yet,
 * without drawing more of it now. Update the notebook afterwards.
 *
 * In windowing modes `contentVisibility` and `defer`, JupyterLab draws cells
 * while the page is idle. But when a cell comes or goes, it goes on with that
 * at once and for 50 ms, while the page can do nothing else. No upstream issue
 * is known.
 *
 * @returns Whether the notebook is to be updated.
 */
export function drawLater(notebook: Notebook, change: () => void): boolean {
  const isDrawn = !notebook.widgets.some(cell => cell.isPlaceholder());
  if (isDrawn || cellPlaces(notebook).windowingActive) {
    change();
    return false;
  }
  const drop = (_: IMessageHandler, { type }: Message) =>
    type !== 'update-request';
  MessageLoop.installMessageHook(notebook, drop);
  try {
    change();
  } finally {
    // Comes after the message, which was posted before.
    void Promise.resolve().then(() =>
      MessageLoop.removeMessageHook(notebook, drop)
    );
  }
  return true;
}
