/** A dialog that says what an act takes away, before it. */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

/**
 * Ask whether to go on.
 *
 * @param act - What the button says; null if there is nothing to do but read.
 */
export async function confirm(
  title: string,
  content: readonly HTMLElement[],
  act: string | null,
  trans: TranslationBundle
): Promise<boolean> {
  const body = new Widget();
  body.node.append(...content);
  const { button } = await showDialog({
    title,
    body,
    buttons:
      act === null
        ? [Dialog.okButton({ label: trans.__('Close') })]
        : [Dialog.cancelButton(), Dialog.warnButton({ label: act })]
  });
  return act !== null && button.accept;
}
