/** What a person writes who gives an agent a token, and what is asked then. */
import type { ApprovalMode, IMintToken, ITokenCaps, TokenBound } from '../wire';

/** What may be done to notebooks. */
export type NotebookScope = 'exec:notebook' | 'edit:notebook' | 'read:notebook';

/** What else an agent may do. */
export type PlainScope = 'exec:scratch' | 'files' | 'history:read:all';

/** Something that can be allowed; where is another question. */
export type Allowed = NotebookScope | PlainScope;

/** Seconds in each unit in which a lifetime can be written. */
export const UNITS = { minutes: 60, hours: 3600, days: 86_400 } as const;

/** The bounds that a token can have. */
export const CAPS: readonly TokenBound[] = [
  'executions_per_minute',
  'concurrent_executions',
  'kernels',
  'wall_seconds',
  'output_bytes'
];

const NOTEBOOK_SCOPES: readonly Allowed[] = [
  'exec:notebook',
  'edit:notebook',
  'read:notebook'
];

const ALLOWED: readonly Allowed[] = [
  'exec:scratch',
  ...NOTEBOOK_SCOPES,
  'files',
  'history:read:all'
];

/** A token as it is being written; numbers are text until it is sent. */
export interface ITokenDraft {
  readonly label: string;
  readonly allowed: ReadonlySet<Allowed>;
  /** Contents paths or patterns of notebooks, one on each line. */
  readonly patterns: string;
  readonly lifetime: string;
  readonly unit: keyof typeof UNITS;
  readonly approval: ApprovalMode | null;
  readonly caps: Readonly<Record<TokenBound, string>>;
}

/** A field of a draft. */
export type DraftField =
  | 'label'
  | 'allowed'
  | 'patterns'
  | 'lifetime'
  | 'approval'
  | `caps.${TokenBound}`;

/** What is wrong with a field: nothing there, no number, or the server's words. */
export type Complaint =
  { kind: 'missing' } | { kind: 'number' } | { kind: 'said'; text: string };

/** What is wrong with a draft. */
export type Complaints = ReadonlyMap<DraftField, Complaint>;

/**
 * A draft without a name, with what a person usually wants.
 *
 * @param settings - What the person has set of it: `lifetime` in hours, and
 * `scopes`.
 * @param path - The notebook that is meant; empty if none is.
 */
export function firstDraft(
  { lifetime, scopes }: Readonly<Record<string, unknown>>,
  path: string
): ITokenDraft {
  const wanted = Array.isArray(scopes) ? scopes : ['exec:scratch'];
  const allowed = ALLOWED.filter(
    scope =>
      wanted.includes(scope) &&
      (path !== '' || !NOTEBOOK_SCOPES.includes(scope))
  );
  return {
    label: '',
    allowed: new Set(allowed),
    patterns: path,
    lifetime: String(lifetime ?? 8),
    unit: 'hours',
    approval: null,
    caps: {
      executions_per_minute: '',
      concurrent_executions: '',
      wall_seconds: '',
      output_bytes: '',
      kernels: ''
    }
  };
}

/** Whether something in notebooks is allowed, so that one has to say which. */
export function isInNotebooks({ allowed }: ITokenDraft): boolean {
  return NOTEBOOK_SCOPES.some(scope => allowed.has(scope));
}

/** The patterns that are written. */
function patternsOf({ patterns }: ITokenDraft): string[] {
  return patterns
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean);
}

/** The scopes that a draft means. */
export function scopesOf(draft: ITokenDraft): string[] {
  const patterns = patternsOf(draft);
  return Array.from(draft.allowed).flatMap(scope =>
    NOTEBOOK_SCOPES.includes(scope)
      ? patterns.map(pattern => `${scope}:${pattern}`)
      : [scope]
  );
}

/** What the server is asked for. */
export function requestOf(draft: ITokenDraft): IMintToken {
  const caps = CAPS.map(cap => [
    cap,
    draft.caps[cap].trim() === '' ? null : Number(draft.caps[cap])
  ]);
  return {
    label: draft.label.trim(),
    scopes: scopesOf(draft),
    expires_in: Number(draft.lifetime) * UNITS[draft.unit],
    approval: draft.approval,
    caps: Object.fromEntries(caps) as unknown as ITokenCaps
  };
}

/** What is wrong with a draft at first sight; the bounds are the server's. */
export function complaintsOf(draft: ITokenDraft): Complaints {
  const found = new Map<DraftField, Complaint>();
  if (draft.label.trim() === '') {
    found.set('label', { kind: 'missing' });
  }
  if (draft.allowed.size === 0) {
    found.set('allowed', { kind: 'missing' });
  }
  if (isInNotebooks(draft) && patternsOf(draft).length === 0) {
    found.set('patterns', { kind: 'missing' });
  }
  const lifetime = Number(draft.lifetime);
  if (!(Number.isFinite(lifetime) && lifetime > 0)) {
    found.set('lifetime', { kind: 'number' });
  }
  for (const cap of CAPS) {
    const written = draft.caps[cap].trim();
    const isNumber =
      cap === 'wall_seconds' ? Number.isFinite : Number.isInteger;
    const value = Number(written);
    if (written !== '' && !(isNumber(value) && value > 0)) {
      found.set(`caps.${cap}`, { kind: 'number' });
    }
  }
  return found;
}

/**
 * The field of a draft that the server names; null if it is none of these.
 *
 * @param named - As the server names it: `label`, `scopes[2]`, `caps.kernels`.
 */
export function fieldOf(
  named: string | null,
  draft: ITokenDraft
): DraftField | null {
  if (named === 'label' || named === 'approval') {
    return named;
  }
  if (named === 'expires_in') {
    return 'lifetime';
  }
  const cap = CAPS.find(each => named === `caps.${each}`);
  if (cap) {
    return `caps.${cap}`;
  }
  if (named?.startsWith('scopes')) {
    const index = Number(/\[(\d+)\]/.exec(named)?.[1] ?? NaN);
    return scopesOf(draft)[index]?.includes('notebook:')
      ? 'patterns'
      : 'allowed';
  }
  return null;
}
