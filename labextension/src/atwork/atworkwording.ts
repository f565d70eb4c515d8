/** How agents at work, and stopping them, are said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type {
  IAgent,
  IAgentAtWork,
  IAgentSession,
  IExecution,
  IStopped
} from '../tokens';
import { fileName, firstLine, shortText } from '../ui/notebookwording';
import { cellName, credentialWord, proposedText, quoted } from '../ui/wording';

/** An agent's name as it can stand in a sentence: its own words. */
export function nameOf(agent: IAgent): string {
  return quoted(shortText(agent.name));
}

/** What each agent does, or waits for, in a line each. */
export function atWorkTitle(
  agents: readonly IAgentAtWork[],
  proposing: readonly IAgentSession[],
  trans: TranslationBundle
): string {
  return agents
    .map(
      ({ session, pending: [first] }) =>
        `${nameOf(session.agent)} · ${cellName(first, trans)}`
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
  seq: number | null,
  trans: TranslationBundle
): string {
  return seq === null
    ? trans.__('Stop %1', nameOf(agent))
    : trans.__('Stop %1: cell %2', nameOf(agent), seq);
}

/** What became of stopping an agent, and whether that is as it was wanted. */
export function stoppedText(
  { execution, session }: IStopped,
  trans: TranslationBundle
): { isFree: boolean; text: string } {
  const name = nameOf(session.agent);
  if (execution && execution.finished_at === null) {
    return {
      isFree: false,
      text: execution.interrupt_ignored
        ? trans.__(
            '%1: cell %2 ignored the interrupt and is still running. Restart or shut down its kernel to end it.',
            name,
            execution.seq
          )
        : trans.__('%1: cell %2 is still running.', name, execution.seq)
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
  { agent, document, input, seq, source, token }: IExecution,
  trans: TranslationBundle
): string {
  const about = [
    seq,
    nameOf(agent),
    shortText(credentialWord(token, trans))
  ] as const;
  return input
    ? trans.__(
        'Cell %1 of %2 (%3) needs input: %4',
        ...about,
        firstLine(input.prompt)
      )
    : trans.__(
        'Cell %1 of %2 (%3) needs approval: %4',
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
