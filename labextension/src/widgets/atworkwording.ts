/** How agents at work, and stopping them, are said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type {
  IAgent,
  IAgentAtWork,
  IExecution,
  IPendingExecution,
  IStopped
} from '../tokens';
import { firstLine, plainName, shortText } from './notebookwording';
import { credentialWord, quoted } from './wording';

/** An agent's name as it can stand in a sentence: its own words. */
export function nameOf(agent: IAgent): string {
  return quoted(shortText(agent.name));
}

/** How many agents ask for approval. */
export function asking(agents: readonly IAgentAtWork[]): number {
  return agents.filter(({ pending }) => asks(pending[0])).length;
}

/** How many are at work, or if some ask, how many those are. */
export function atWorkText(
  agents: readonly IAgentAtWork[],
  trans: TranslationBundle
): string {
  const those = asking(agents);
  return those > 0
    ? trans._n(
        '%1 agent awaiting approval',
        '%1 agents awaiting approval',
        those,
        those
      )
    : trans._n(
        '%1 agent at work',
        '%1 agents at work',
        agents.length,
        agents.length
      );
}

/** What each agent does, in a line each. */
export function atWorkTitle(
  agents: readonly IAgentAtWork[],
  trans: TranslationBundle
): string {
  return agents
    .map(({ session, pending: [first] }) =>
      trans.__('%1: %2', nameOf(session.agent), pendingText(first, trans))
    )
    .join('\n');
}

function pendingText(
  execution: IPendingExecution,
  trans: TranslationBundle
): string {
  const { seq, status } = execution;
  const cell = seq === null ? trans.__('a cell') : trans.__('cell %1', seq);
  if (asks(execution)) {
    return trans.__('awaiting approval for %1', cell);
  }
  if (status === 'awaiting_input') {
    return trans.__('awaiting input in %1', cell);
  }
  return status === 'running'
    ? trans.__('running %1', cell)
    : trans.__('%1 is queued', cell);
}

function asks({ status }: IPendingExecution): boolean {
  return status === 'awaiting_approval';
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

/** That an agent asks for approval. */
export function askedText(
  { agent, document, seq, source, token }: IExecution,
  trans: TranslationBundle
): string {
  const name = nameOf(agent);
  const credential = shortText(credentialWord(token, trans));
  return document
    ? trans.__(
        'Agent %1 (%2) requests approval for cell %3 in %4',
        name,
        credential,
        seq,
        shortText(plainName(document.path))
      )
    : trans.__(
        'Agent %1 (%2) requests approval for cell %3: %4',
        name,
        credential,
        seq,
        firstLine(source)
      );
}

/** That a kernel died under an agent. */
export function diedText(
  { agent, seq }: IExecution,
  trans: TranslationBundle
): string {
  return trans.__(
    'The kernel died while agent %1 ran cell %2',
    nameOf(agent),
    seq
  );
}

/** That somebody stopped an agent. */
export function stoppedElsewhereText(
  { agent, reason, seq }: IExecution,
  by: string | null,
  trans: TranslationBundle
): string {
  const name = nameOf(agent);
  if (by) {
    const who = shortText(plainName(by));
    return trans.__('Agent %1 was stopped in cell %2 by %3', name, seq, who);
  }
  const text = trans.__('Agent %1 was stopped in cell %2', name, seq);
  return reason ? `${text}: ${plainName(reason)}` : text;
}
