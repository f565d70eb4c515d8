/** How what asks for approval is said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { kernelName } from '../tokens';
import type {
  IAgentSession,
  IApprovalList,
  IExecution,
  IRefusal
} from '../tokens';
import {
  agentText,
  credentialWord,
  momentText,
  personName,
  plainName,
  quoted,
  roughly,
  shortText,
  userText
} from '../ui/wording';

/** Who asks. */
export function askerText(
  { agent, token, username }: Pick<IExecution, 'agent' | 'token' | 'username'>,
  trans: TranslationBundle
): string {
  const who = `${agentText(agent)} (${shortText(credentialWord(token, trans))})`;
  const person = personName(username);
  return person ? trans.__('%1, on behalf of %2,', who, person) : who;
}

/** In which life of which kernel it would run. */
export function kernelText(
  { approval, kernel }: IExecution,
  session: IAgentSession | null,
  trans: TranslationBundle
): string {
  const name = kernel?.name ?? (session && kernelName(session));
  const life = approval?.incarnation ?? 0;
  if (!approval?.kernel_id || life < 1) {
    return [name && plainName(name), trans.__('not started yet')]
      .filter(Boolean)
      .join(', ');
  }
  const called = plainName(name ?? approval.kernel_id);
  return life === 1
    ? called
    : trans._n(
        '%2, restarted %1 time',
        '%2, restarted %1 times',
        life - 1,
        called
      );
}

/** What else an approval lets run where an agent needs one for each kernel. */
export function untilRestartText(trans: TranslationBundle): string {
  return trans.__(
    'the agent runs code in this kernel without asking, until the kernel restarts'
  );
}

/** How long it may still be decided about. */
export function expiryText(
  expiresAt: string,
  now: number,
  trans: TranslationBundle
): string {
  const left = Date.parse(expiresAt) - now;
  if (left <= 0) {
    return trans.__('expires now');
  }
  return trans.__('expires in %1', roughly(left / 1000));
}

/** What became of what asked. */
export function outcomeText(
  { approval, status }: IExecution,
  trans: TranslationBundle
): string {
  const who = userText(approval?.decided_by ?? '', trans);
  switch (approval?.status) {
    case 'approved':
      return approval.asked_source === null
        ? trans.__('Approved by %1', who)
        : trans.__('Edited and approved by %1', who);
    case 'rejected':
      return trans.__('Rejected by %1', who);
    case 'expired':
      return trans.__('Expired: nobody decided in time');
    case 'withdrawn':
      return trans.__('Withdrawn by the agent');
    default:
      return status === 'awaiting_approval' ? '' : trans.__('Already decided');
  }
}

/** What the seal of a trial refused: a fact, as the code tried it. */
export function refusedText(
  { kind, what }: IRefusal,
  trans: TranslationBundle
): string {
  const tried = {
    write: trans.__('It writes or removes a file'),
    connect: trans.__('It uses the network'),
    start: trans.__('It starts a program'),
    signal: trans.__('It signals a process'),
    access: trans.__('The trial was refused something')
  }[kind];
  return what === null ? tried : `${tried}: ${quoted(shortText(what))}`;
}

/** Who paused all agents, and since when. */
export function pausedText(
  { at, by }: NonNullable<IApprovalList['paused']>,
  now: number,
  trans: TranslationBundle
): string {
  return trans.__(
    'All agents are paused by %1, since %2. Code that runs goes on until it ends, or you stop it.',
    userText(by ?? '', trans),
    momentText(at, now)
  );
}

/** That somebody changed the record. */
export function brokenText(
  { name }: NonNullable<IApprovalList['broken']>,
  trans: TranslationBundle
): string {
  return trans.__(
    'The record is not as the server signed it, so it is not signed any more (%1)',
    name
  );
}

/** What is wrong with a copy of the record. */
export function sinkText(
  { entries_behind, is_stopping_code, name }: IApprovalList['sinks'][number],
  trans: TranslationBundle
): string {
  if (is_stopping_code) {
    return trans.__(
      'Agents cannot run code: the copy of the record in "%1" is too far behind',
      name
    );
  }
  return trans._n(
    'The record cannot be copied to "%2": it lacks %1 entry',
    'The record cannot be copied to "%2": it lacks %1 entries',
    entries_behind,
    name
  );
}
