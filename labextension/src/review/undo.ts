/** Lets a person undo what an agent ran: the kernel is as it was before. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IAgentExecApi } from '../api/client';
import type { IExecution, IProposedEdit } from '../wire';
import { confirm } from './confirm';
import { element } from '../ui/elements';
import { inOneLine } from '../ui/wording';

/** A sentence, and what does not come back. */
function told(text: string, items: readonly string[]): HTMLElement[] {
  const list = element('ul', '');
  list.append(...items.map(each => element('li', '', each)));
  return [element('p', '', text), list];
}

/** The edits that a session has proposed since an execution began. */
async function round(
  api: IAgentExecApi,
  { session_id, started_at }: IExecution
): Promise<readonly IProposedEdit[]> {
  const begun = Date.parse(started_at ?? '');
  const { proposals } = await api.listProposals(null, session_id);
  return proposals
    .filter(({ proposed_at }) => Date.parse(proposed_at) >= begun)
    .flatMap(({ edits }) => edits);
}

/**
 * Take the kept edits of a round out of the notebook, and reject the open ones.
 *
 * @returns Why some stay: a person has changed their cells since.
 */
async function takeBack(
  api: IAgentExecApi,
  sessionId: string,
  edits: readonly IProposedEdit[]
): Promise<string[]> {
  const ids = edits
    .filter(({ status }) => status === 'kept')
    .map(({ id }) => id);
  const { proposals } = await api.decideEdits('undo', sessionId, ids);
  const now = proposals
    .flatMap(proposal => proposal.edits)
    .filter(({ id }) => edits.some(each => each.id === id));
  const open = now.filter(({ status }) => status === 'open');
  if (open.length > 0) {
    await api.decideEdits(
      'reject',
      sessionId,
      open.map(({ id }) => id)
    );
  }
  return now
    .filter(({ status }) => status === 'kept')
    .map(({ reason }) => inOneLine(reason ?? ''));
}

/** Undo an execution, or say why not; where it is off, offer to turn it on. */
export async function undo(
  api: IAgentExecApi,
  id: string,
  trans: TranslationBundle
): Promise<void> {
  const execution = await api.getExecution(id);
  const { kernel, session_id } = execution;
  if (kernel === null) {
    return;
  }
  const { checkpoints, enabled, not_undone, reason } = await api.getCheckpoints(
    kernel.id
  );
  const found = checkpoints.find(each => each.execution_id === id);
  const title = trans.__('Undo what the agent ran');
  if (found?.undoable) {
    const text = trans.__(
      'All variables will be as they were before this code ran. This does not come back:'
    );
    const edits = await round(api, execution);
    const kept = edits.filter(({ status }) => status === 'kept').length;
    const tick = element('input', '');
    tick.type = 'checkbox';
    const label = element('label', '');
    label.append(
      tick,
      trans._n(
        'Also take back the %1 proposal kept in this round, and reject those not decided yet',
        'Also take back the %1 proposals kept in this round, and reject those not decided yet',
        kept
      )
    );
    const content = [...told(text, not_undone), ...(kept > 0 ? [label] : [])];
    if (await confirm(title, content, trans.__('Undo'), trans)) {
      await api.undo(id);
      const left = tick.checked ? await takeBack(api, session_id, edits) : [];
      if (left.length > 0) {
        const text = trans._n(
          '%1 proposal stays in the notebook:',
          '%1 proposals stay in the notebook:',
          left.length
        );
        await confirm(title, told(text, left), null, trans);
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
