/** Dialogs, as a person answers them. */
import { Dialog } from '@jupyterlab/apputils';

/** The dialog that is shown. */
export function shownDialog(): HTMLElement {
  return Dialog.tracker.currentWidget!.node;
}

/** Answer the dialog that is shown, as Enter does; null cancels it. */
export function answerDialog(value: string | null): void {
  const dialog = Dialog.tracker.currentWidget!;
  if (value === null) {
    dialog.reject();
    return;
  }
  dialog.node.querySelector<HTMLInputElement>('input')!.value = value;
  dialog.resolve();
}
