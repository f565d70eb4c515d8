/** The command that erases from the record, after it has shown what goes. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import type { IErasure, ILiveModel } from '../tokens';
import { element } from '../ui/elements';
import { cannotErase, erasureLines } from './erasurewording';
import { sessionCommand } from '../ui/commands';

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

/** Add the command. */
export function addErase(
  { commands }: JupyterFrontEnd,
  live: ILiveModel,
  trans: TranslationBundle
): void {
  const { api } = live;
  commands.addCommand(CommandIDs.erase, {
    ...sessionCommand(live, trans, async session_id => {
      const erasure = await api.erase({ session_id, dry_run: true });
      if (await confirm(erasure, trans)) {
        await api.erase({ session_id });
        await commands.execute(CommandIDs.refresh);
      }
    }),
    label: trans.__('Erase From the Record…')
  });
  live.changed.connect(() => commands.notifyCommandChanged(CommandIDs.erase));
}
