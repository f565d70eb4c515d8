/** The command that brings an agent's outputs that are held back, and trusts their cell. */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { CommandIDs } from '../tokens';
import type { IAgentExecApi } from '../tokens';
import { reporter, takes } from '../ui/commands';
import { plainName } from '../ui/wording';

/** Milliseconds for which a notification is shown. */
const SHOWN = 8000;

/** Accept the outputs of an execution, unless the cell is a copy of its cell. */
async function accept(
  api: IAgentExecApi,
  id: string,
  cellId: unknown,
  trans: TranslationBundle
): Promise<void> {
  const { document } = await api.getExecution(id);
  if (cellId && document?.cell_id && document.cell_id !== cellId) {
    Notification.warning(
      trans.__(
        'This cell is a copy. Accept the outputs of the original cell: %1',
        plainName(document.path)
      ),
      { autoClose: SHOWN }
    );
  } else {
    await api.acceptOutputs(id);
  }
}

/** Add the command. */
export function addAcceptOutputs(
  commands: CommandRegistry,
  api: IAgentExecApi,
  trans: TranslationBundle
): void {
  commands.addCommand(CommandIDs.acceptOutputs, {
    label: trans.__('Accept outputs'),
    describedBy: takes('execution_id!', 'cell_id'),
    execute: ({ cell_id, execution_id }) =>
      accept(api, String(execution_id), cell_id, trans).catch(reporter(trans))
  });
}
