/** Lets a person undo what an agent ran: the kernel is as it was before. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IAgentExecApi } from '../api/client';
import { CommandIDs } from '../tokens';
import type { Execute } from '../tokens';
import { confirm } from './confirm';
import { element } from '../ui/elements';

/** A sentence, and what does not come back. */
function told(text: string, items: readonly string[]): HTMLElement[] {
  const list = element('ul', '');
  list.append(...items.map(each => element('li', '', each)));
  return [element('p', '', text), list];
}

/** Undo an execution, or say why not; where it is off, offer to turn it on. */
export async function undo(
  api: IAgentExecApi,
  id: string,
  execute: Execute,
  trans: TranslationBundle
): Promise<void> {
  const { document, kernel, session_id, started_at } =
    await api.getExecution(id);
  if (kernel === null) {
    return;
  }
  const { checkpoints, enabled, not_undone, reason } = await api.getCheckpoints(
    kernel.id
  );
  const found = checkpoints.find(each => each.execution_id === id);
  const title = trans.__('Undo');
  if (found?.undoable) {
    const text = trans.__(
      'All variables will be as they were before this code ran. This does not come back:'
    );
    const tick = element('input', '');
    tick.type = 'checkbox';
    const label = element('label', '');
    label.append(
      tick,
      trans.__('Also undo what the agent has changed in the notebook since')
    );
    const content = [...told(text, not_undone), ...(document ? [label] : [])];
    if (await confirm(title, content, title, trans)) {
      await api.undo(id);
      if (tick.checked) {
        await execute(CommandIDs.undoRound, { session_id, since: started_at });
      }
    }
  } else if (enabled || reason !== null) {
    const text =
      reason ??
      trans.__(
        'This cannot be undone: you have run code since, or a newer execution can be undone instead.'
      );
    await confirm(title, told(text, []), null, trans);
  } else {
    const text = trans.__(
      'Undo is off for this kernel. If you turn it on, you can undo what agents run from now on. This does not come back:'
    );
    if (
      await confirm(title, told(text, not_undone), trans.__('Turn on'), trans)
    ) {
      await api.keepCheckpoints(kernel.id);
    }
  }
}
