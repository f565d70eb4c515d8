/** How agent tokens are said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Allowed, Complaint, DraftField } from '../model/tokendraft';
import { CAPS, UNITS } from '../model/tokendraft';
import type {
  ApprovalMode,
  IAgentSession,
  IAgentToken,
  ITokenCaps,
  TokenBound
} from '../tokens';
import { plainName, shortText } from './notebookwording';
import { userText } from './wording';

/** The pattern that all notebooks match. */
const EVERYWHERE = '**';

/** What an agent is allowed, as a choice. */
export function allowedText(
  allowed: Allowed,
  trans: TranslationBundle
): string {
  switch (allowed) {
    case 'exec:scratch':
      return trans.__('Run code in its own scratch kernels');
    case 'exec:notebook':
      return trans.__('Run code in the kernels of these notebooks');
    case 'edit:notebook':
      return trans.__('Change and run the cells of these notebooks');
    case 'read:notebook':
      return trans.__('Read these notebooks');
    case 'files':
      return trans.__('Read and write files in the folders where it works');
    case 'history:read:all':
      return trans.__('Read the history of all agents');
  }
}

/** What scopes let an agent do, each in a sentence. */
export function scopeLines(
  scopes: readonly string[],
  trans: TranslationBundle
): string[] {
  const where = (scope: string) =>
    scopes
      .filter(each => each === scope || each.startsWith(`${scope}:`))
      .map(each => each.slice(scope.length + 1) || EVERYWHERE);
  const said = (scope: string, all: string, some: (list: string) => string) => {
    const patterns = where(scope);
    if (patterns.length === 0) {
      return [];
    }
    return patterns.includes(EVERYWHERE)
      ? [all]
      : [some(patterns.map(plainName).join(', '))];
  };
  const plain = (scope: string, text: string) =>
    scopes.includes(scope) ? [text] : [];
  return [
    ...plain('exec:scratch', trans.__('Run code in scratch kernels')),
    ...said('exec:notebook', trans.__('Run code in all notebooks'), list =>
      trans.__('Run code in %1', list)
    ),
    ...said(
      'edit:notebook',
      trans.__('Change and run cells of all notebooks'),
      list => trans.__('Change and run cells of %1', list)
    ),
    ...said('read:notebook', trans.__('Read all notebooks'), list =>
      trans.__('Read %1', list)
    ),
    ...plain(
      'files',
      trans.__('Read and write files in the folders where it works')
    ),
    ...plain('history:read', trans.__('Read its own history')),
    ...plain('history:read:all', trans.__('Read the history of all agents'))
  ];
}

/** A choice of what has to be approved; null is what the policy says. */
export function approvalChoice(
  mode: ApprovalMode | null,
  trans: TranslationBundle
): string {
  switch (mode) {
    case null:
      return trans.__('Use the approval policy');
    case 'first':
      return trans.__('The first execution');
    case 'rules':
      return trans.__('What the rules do not let through');
    case 'always':
      return trans.__('Every execution');
    case 'none':
      return trans.__('Nothing');
  }
}

/** What a choice means. */
export function approvalMeaning(
  mode: ApprovalMode | null,
  trans: TranslationBundle
): string {
  switch (mode) {
    case null:
      return trans.__(
        'The settings “Agents: approval” apply, including later changes to them.'
      );
    case 'first':
      return trans.__(
        'You approve one execution each time a kernel starts or restarts. After that, the agent can run any code there.'
      );
    case 'rules':
      return trans.__(
        'Code that only reads, computes and draws runs at once; other code asks. A convenience, not a guard.'
      );
    case 'always':
      return trans.__('Nothing runs before you approve it.');
    case 'none':
      return trans.__(
        'Code runs without your approval, unless the server’s configuration requires it.'
      );
  }
}

/** What has to be approved of a token's agent; empty for what the policy says. */
export function approvalLine(
  mode: ApprovalMode | null,
  trans: TranslationBundle
): string {
  switch (mode) {
    case null:
      return '';
    case 'first':
      return trans.__('Needs approval for its first execution');
    case 'rules':
      return trans.__('Needs approval for what the rules do not let through');
    case 'always':
      return trans.__('Needs approval for every execution');
    case 'none':
      return trans.__('Needs no approval');
  }
}

/** What a bound is called. */
export function capText(cap: TokenBound, trans: TranslationBundle): string {
  switch (cap) {
    case 'executions_per_minute':
      return trans.__('Executions per minute');
    case 'concurrent_executions':
      return trans.__('Executions at once, queued or running');
    case 'kernels':
      return trans.__('Sessions open at once');
    case 'wall_seconds':
      return trans.__('Time for an execution, in seconds');
    case 'output_bytes':
      return trans.__('Output kept for a cell, in bytes');
  }
}

/** The bounds that a token has, each in a sentence. */
export function capLines(caps: ITokenCaps, trans: TranslationBundle): string[] {
  const bounds = CAPS.flatMap(cap =>
    caps[cap] === null
      ? []
      : [
          trans.__(
            '%1: at most %2',
            capText(cap, trans),
            caps[cap].toLocaleString()
          )
        ]
  );
  return caps.completion === false
    ? [...bounds, trans.__('No completions or documentation from kernels')]
    : bounds;
}

/** A unit of time. */
export function unitText(
  unit: keyof typeof UNITS,
  trans: TranslationBundle
): string {
  switch (unit) {
    case 'minutes':
      return trans.__('minutes');
    case 'hours':
      return trans.__('hours');
    case 'days':
      return trans.__('days');
  }
}

/** A bound, as the server tells of it: of a number, or of a text's length. */
const BOUND = /^Expected `[^`]*`( of length)? ([<>])= ([\d.]+)$/;

/** A bound that the server tells of; null if it tells of something else. */
function boundText(
  field: DraftField,
  said: string,
  trans: TranslationBundle
): string | null {
  const found = BOUND.exec(said);
  if (!found) {
    return null;
  }
  const value = Number(found[3]);
  const bound =
    field === 'lifetime' ? roughly(value, trans) : value.toLocaleString();
  if (found[1]) {
    return trans.__('At most %1 characters.', bound);
  }
  return found[2] === '<'
    ? trans.__('At most %1.', bound)
    : trans.__('At least %1.', bound);
}

/** What is wrong with a field. */
export function complaintText(
  field: DraftField,
  complaint: Complaint,
  trans: TranslationBundle
): string {
  if (complaint.kind === 'said') {
    return boundText(field, complaint.text, trans) ?? plainName(complaint.text);
  }
  if (complaint.kind === 'number') {
    switch (field) {
      case 'lifetime':
        return trans.__('Enter a number greater than 0.');
      case 'caps.wall_seconds':
        return trans.__('Enter a number greater than 0, or leave this empty.');
      default:
        return trans.__(
          'Enter a whole number greater than 0, or leave this empty.'
        );
    }
  }
  switch (field) {
    case 'allowed':
      return trans.__('Select at least one thing that the agent may do.');
    case 'patterns':
      return trans.__('Enter at least one notebook.');
    default:
      return trans.__('Enter a name.');
  }
}

/** A time in its largest unit, as one says it at a glance. */
export function roughly(seconds: number, trans: TranslationBundle): string {
  const { days, hours, minutes } = UNITS;
  if (seconds >= 2 * days) {
    const count = Math.round(seconds / days);
    return trans._n('%1 day', '%1 days', count, count);
  }
  if (seconds >= 2 * hours) {
    const count = Math.round(seconds / hours);
    return trans._n('%1 hour', '%1 hours', count, count);
  }
  const count = Math.max(1, Math.round(seconds / minutes));
  return trans._n('%1 minute', '%1 minutes', count, count);
}

/** When a token ends, or how it did. */
export function endText(
  token: IAgentToken,
  status: IAgentToken['status'],
  now: number,
  trans: TranslationBundle
): string {
  const since = (at: string | null) =>
    roughly((now - Date.parse(at ?? token.expires_at)) / 1000, trans);
  switch (status) {
    case 'active': {
      const left = (Date.parse(token.expires_at) - now) / 1000;
      return trans.__('Expires in %1', roughly(left, trans));
    }
    case 'expired':
      return trans.__('Expired %1 ago', since(token.expires_at));
    case 'revoked':
      return trans.__('Revoked %1 ago', since(token.revoked_at));
  }
}

/** When a token was used last. */
export function usedText(
  { last_used_at }: IAgentToken,
  now: number,
  trans: TranslationBundle
): string {
  if (last_used_at === null) {
    return trans.__('Never used');
  }
  const seconds = (now - Date.parse(last_used_at)) / 1000;
  return trans.__('Last used %1 ago', roughly(seconds, trans));
}

/** By what right an agent works in a session, in a word. */
export function accessWord(
  { access, token }: IAgentSession,
  trans: TranslationBundle
): string {
  return access === 'full'
    ? trans.__('Full access')
    : shortText(plainName(token?.label ?? ''));
}

/** By what right an agent works in a session. */
export function accessText(
  { access, token, username }: IAgentSession,
  trans: TranslationBundle
): string {
  return access === 'full'
    ? trans.__(
        'Full access: the agent has the same permissions as %1',
        userText(username, trans)
      )
    : trans.__('With the agent token “%1”', plainName(token?.label ?? ''));
}

/** For whom a configuration is. */
export function configurationText(
  name: string,
  trans: TranslationBundle
): string {
  switch (name) {
    case 'mcp':
      return trans.__('MCP (HTTP)');
    case 'mcp-stdio':
      return trans.__('MCP (process)');
    case 'python':
      return trans.__('Python');
    case 'curl':
      return trans.__('curl');
    default:
      // One that a newer server knows.
      return plainName(name);
  }
}

/** What to do with a configuration. */
export function configurationHint(
  name: string,
  trans: TranslationBundle
): string {
  switch (name) {
    case 'mcp':
      return trans.__(
        'For MCP clients that use HTTP: add this to the client’s configuration.'
      );
    case 'mcp-stdio':
      return trans.__(
        'For MCP clients that start a process on this computer: add this to the client’s configuration.'
      );
    case 'python':
      return trans.__(
        'For a program: this opens a session and runs code in it.'
      );
    case 'curl':
      return trans.__('For a terminal: this requests the server’s status.');
    default:
      return '';
  }
}
