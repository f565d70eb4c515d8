/** How agents at work, and stopping them, are said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type {
  IAgent,
  IAgentAtWork,
  IAgentSession,
  IExecution,
  IStopped
} from '../tokens';
import { fileName, firstLine } from '../ui/notebookwording';
import {
  cellName,
  cellStatus,
  credentialWord,
  nameOf,
  proposedText,
  shortText
} from '../ui/wording';
import type { ICounted } from '../ui/wording';

/** What each agent does, or waits for, in a line each. */
export function atWorkTitle(
  agents: readonly IAgentAtWork[],
  proposing: readonly IAgentSession[],
  trans: TranslationBundle
): string {
  return agents
    .map(
      ({ session, pending: [first] }) =>
        `${nameOf(session.agent)} · ${cellStatus(first, trans)}`
    )
    .concat(
      proposing.map(
        session => `${nameOf(session.agent)} · ${proposedText(session, trans)}`
      )
    )
    .join('\n');
}

/** What a button or command does that stops an agent. */
export function stopText(
  agent: IAgent,
  cell: ICounted | null,
  trans: TranslationBundle
): string {
  return typeof cell?.seq === 'number'
    ? trans.__('Stop %1: %2', nameOf(agent), cellName(cell, trans))
    : trans.__('Stop %1', nameOf(agent));
}

/** What became of stopping an agent, and whether that is as it was wanted. */
export function stoppedText(
  { execution, session }: IStopped,
  trans: TranslationBundle
): { isFree: boolean; text: string } {
  const name = nameOf(session.agent);
  if (execution && execution.finished_at === null) {
    const cell = cellName(execution, trans);
    return {
      isFree: false,
      text: execution.interrupt_ignored
        ? trans.__(
            '%1: %2 ignored the interrupt and is still running. Restart or shut down its kernel to end it.',
            name,
            cell
          )
        : trans.__('%1: %2 is still running.', name, cell)
    };
  }
  if (session.kernel?.execution_state === 'busy') {
    return {
      isFree: false,
      text: trans.__('Stopped %1; the kernel is busy with other code.', name)
    };
  }
  return {
    isFree: true,
    text: execution?.interrupt_ignored
      ? trans.__(
          'Stopped %1. The code ignored the interrupt, so its kernel was shut down.',
          name
        )
      : trans.__('Stopped %1; the kernel is free.', name)
  };
}

/** That a cell of an agent needs approval, or its code input. */
export function askedText(
  execution: IExecution,
  trans: TranslationBundle
): string {
  const { agent, document, input, source, token } = execution;
  const about = [
    nameOf(agent),
    shortText(credentialWord(token, trans)),
    cellName(execution, trans)
  ] as const;
  return input
    ? trans.__(
        '%1 (%2) needs input for %3: %4',
        ...about,
        firstLine(input.prompt)
      )
    : trans.__(
        '%1 (%2) needs approval for %3: %4',
        ...about,
        document ? fileName(document.path) : firstLine(source)
      );
}

/** That an agent proposes changes of a notebook. */
export function proposingText(
  session: IAgentSession,
  trans: TranslationBundle
): string {
  return trans.__(
    '%1 (%2): %3 of %4',
    nameOf(session.agent),
    shortText(credentialWord(session.token, trans)),
    proposedText(session, trans),
    fileName(session.path ?? '')
  );
}
