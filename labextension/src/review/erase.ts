/** The command that erases from the record, after it has shown what goes. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import type { IActivityModel, IErasure } from '../tokens';
import { element } from '../ui/elements';
import { cannotErase, erasureLines } from './erasurewording';
import { reporter, takes, watchSelected } from '../ui/commands';

/** Show what goes; return whether the person wants that. */
async function confirm(
  erasure: IErasure,
  trans: TranslationBundle
): Promise<boolean> {
  const no = cannotErase(erasure, trans);
  const body = new Widget();
  for (const line of no === null ? erasureLines(erasure, trans) : [no]) {
    body.node.append(element('p', '', line));
  }
  const { button } = await showDialog({
    title: trans.__('Erase From the Record'),
    body,
    defaultButton: 0,
    buttons:
      no === null
        ? [
            Dialog.cancelButton(),
            Dialog.warnButton({ label: trans.__('Erase') })
          ]
        : [Dialog.okButton({ label: trans.__('Close') })]
  });
  return no === null && button.accept;
}

async function erase(
  { commands }: JupyterFrontEnd,
  { api, selected }: IActivityModel,
  { session_id = selected?.id }: ReadonlyPartialJSONObject,
  trans: TranslationBundle
): Promise<void> {
  const wanted = { session_id: String(session_id) };
  if (await confirm(await api.erase({ ...wanted, dry_run: true }), trans)) {
    await api.erase(wanted);
    await commands.execute(CommandIDs.refresh);
  }
}

/** Add the command. */
export function addErase(
  app: JupyterFrontEnd,
  model: IActivityModel,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.erase, {
    label: trans.__('Erase From the Record…'),
    describedBy: takes('session_id'),
    isEnabled: ({ session_id }) =>
      typeof session_id === 'string' || model.selected !== null,
    execute: args => erase(app, model, args, trans).catch(reporter(trans))
  });
  watchSelected(model, () =>
    app.commands.notifyCommandChanged(CommandIDs.erase)
  );
}
