/** The command that erases from the record, after it has shown what goes. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandIDs } from '../tokens';
import type { IErasure, ILiveModel } from '../tokens';
import { element } from '../ui/elements';
import { confirm } from './confirm';
import { cannotErase, erasureLines } from './erasurewording';
import { sessionCommand } from '../ui/commands';

/** Show what goes; return whether the person wants that. */
function confirmErasure(
  erasure: IErasure,
  trans: TranslationBundle
): Promise<boolean> {
  const no = cannotErase(erasure, trans);
  const lines = no === null ? erasureLines(erasure, trans) : [no];
  return confirm(
    trans.__('Erase From the Record'),
    lines.map(line => element('p', '', line)),
    no === null ? trans.__('Erase') : null,
    trans,
    { defaultButton: 0 }
  );
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
      if (await confirmErasure(erasure, trans)) {
        await api.erase({ session_id });
        await commands.execute(CommandIDs.refresh);
      }
    }),
    label: trans.__('Erase From the Record…')
  });
  live.changed.connect(() => commands.notifyCommandChanged(CommandIDs.erase));
}
