/** The words for agent tokens. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { RIGHTS } from '../model/tokenform';
import { CAPS } from '../model/tokenform';
import type {
  ApprovalMode,
  EditMode,
  IAgentSession,
  IAgentToken,
  ITokenCaps,
  TokenBound
} from '../tokens';
import { plainName, shortText } from './notebookwording';
import { roughly, userText } from './wording';

/** The choices of what needs approval; null is the server's policy. */
export const MODES: readonly (ApprovalMode | null)[] = [
  null,
  'first',
  'always',
  'none'
];

/** The choices of what becomes of edits; null is the server's policy. */
export const EDIT_MODES: readonly (EditMode | null)[] = [
  null,
  'propose',
  'apply'
];

/** What an agent may do in notebooks. */
export function rightsText(
  rights: (typeof RIGHTS)[number],
  trans: TranslationBundle
): string {
  switch (rights) {
    case 'exec edit':
      return trans.__('Run code and change cells');
    case 'exec':
      return trans.__('Run code');
    case 'edit':
      return trans.__('Change cells and run them');
    case 'look':
      return trans.__('Look: read, and try code that can change nothing');
    case 'read':
      return trans.__('Read');
  }
}

/** What scopes let an agent do, each in a line. */
export function scopeLines(
  scopes: readonly string[],
  trans: TranslationBundle
): string[] {
  const lines: Record<string, string> = {
    'exec:scratch': trans.__('Run code in kernels of its own'),
    'exec:notebook': rightsText('exec', trans),
    'edit:notebook': rightsText('edit', trans),
    'look:notebook': rightsText('look', trans),
    'read:notebook': rightsText('read', trans),
    files: trans.__('Read and write files in the folders where it works'),
    'history:read': trans.__('Read its own history'),
    'history:read:all': trans.__('Read the history of all agents')
  };
  return scopes.map(scope => {
    const [, kind, pattern] = /^(\w+:notebook):?(.*)$/.exec(scope) ?? [];
    if (kind === undefined) {
      return lines[scope] ?? plainName(scope);
    }
    return ['', '**'].includes(pattern)
      ? trans.__('%1: all notebooks', lines[kind])
      : trans.__('%1: %2', lines[kind], plainName(pattern));
  });
}

/** The choice of the server's policy, and what that is. */
function serverDefault(choice: string, trans: TranslationBundle): string {
  const [first, ...others] = choice;
  return trans.__(
    'Server default (%1)',
    [first.toLocaleLowerCase(), ...others].join('')
  );
}

/** A choice of what needs approval; null is the server's policy, if it is known. */
export function approvalChoice(
  mode: ApprovalMode | null,
  trans: TranslationBundle,
  policy?: ApprovalMode
): string {
  switch (mode) {
    case null:
      return policy
        ? serverDefault(approvalChoice(policy, trans), trans)
        : trans.__('Server default');
    case 'first':
      return trans.__('Ask once for each agent, until the kernel restarts');
    case 'always':
      return trans.__('Ask before each cell');
    case 'none':
      return trans.__('Never ask');
  }
}

/** A choice of what becomes of edits; null is the server's policy, if it is known. */
export function editChoice(
  mode: EditMode | null,
  trans: TranslationBundle,
  policy?: EditMode
): string {
  switch (mode) {
    case null:
      return policy
        ? serverDefault(editChoice(policy, trans), trans)
        : trans.__('Server default');
    case 'propose':
      return trans.__('Propose changes');
    case 'apply':
      return trans.__('Change cells at once');
  }
}

/** The name of a limit. */
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

/** The limits of a token, each in a line. */
export function capLines(caps: ITokenCaps, trans: TranslationBundle): string[] {
  const lines = (Object.keys(CAPS) as TokenBound[])
    .filter(cap => caps[cap] !== null)
    .map(cap =>
      trans.__(
        '%1: at most %2',
        capText(cap, trans),
        caps[cap]!.toLocaleString()
      )
    );
  return caps.completion === false
    ? [...lines, trans.__('No completions or documentation from kernels')]
    : lines;
}

/** When a token ends, or how it did. */
export function endText(
  token: IAgentToken,
  status: IAgentToken['status'],
  now: number,
  trans: TranslationBundle
): string {
  const since = (at: string | null) =>
    roughly((now - Date.parse(at ?? token.expires_at)) / 1000);
  switch (status) {
    case 'active': {
      const left = (Date.parse(token.expires_at) - now) / 1000;
      return trans.__('Expires in %1', roughly(left));
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
  return trans.__('Last used %1 ago', roughly(seconds));
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
