/** What an agent may run without asking, and for how long. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandIDs } from '../tokens';
import type { Execute, IAgentSession } from '../tokens';
import { element, linkButton } from '../ui/elements';
import { momentText } from '../ui/wording';

/** The grant of a session's agent; null if it has ended. */
export function grantOf(
  { grant }: IAgentSession,
  now: number
): IAgentSession['grant'] {
  const until = grant?.until ?? null;
  return until === null || Date.parse(until) > now ? grant : null;
}

/** How long an agent runs code without asking. */
export function grantText(
  { until }: NonNullable<IAgentSession['grant']>,
  now: number,
  trans: TranslationBundle
): string {
  return until === null
    ? trans.__('Runs code without asking until the kernel restarts')
    : trans.__('Runs code without asking until %1', momentText(until, now));
}

/** A line at the head of a session, which ends the grant; null if the agent asks. */
export function createGrant(
  session: IAgentSession,
  now: number,
  execute: Execute,
  trans: TranslationBundle
): HTMLElement | null {
  const grant = grantOf(session, now);
  if (!grant) {
    return null;
  }
  const line = element('div', '', `${grantText(grant, now, trans)} `);
  const withdraw = () =>
    void execute(CommandIDs.withdrawGrant, { session_id: session.id });
  line.append(linkButton(trans.__('Let the Agent Ask Again'), withdraw));
  return line;
}
