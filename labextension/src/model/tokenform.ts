/** What the form that gives an agent access sends to the server. */
import type { ApprovalMode, EditMode, IMintToken, TokenBound } from '../wire';

/** The limits that a token can have, with their smallest and largest values. */
export const CAPS: Readonly<Record<TokenBound, readonly [number, number?]>> = {
  executions_per_minute: [1, 100_000],
  concurrent_executions: [1, 1000],
  kernels: [1, 1000],
  wall_seconds: [1],
  output_bytes: [1000]
};

/** What an agent may do in the notebooks of its token; the first is the default. */
export const RIGHTS = ['exec edit', 'exec', 'edit', 'look', 'read'] as const;

/** How long a token can be valid, in seconds. */
export const LIFETIMES = [3600, 28_800, 86_400, 604_800, 2_592_000] as const;

/** The lifetime that is chosen at first. */
export const LIFETIME = 28_800;

/** The scopes that a form means; empty if it allows nothing. */
function scopesOf(form: FormData): string[] {
  const lines = String(form.get('patterns')).split('\n');
  const patterns = [form.get('notebook'), ...lines.map(line => line.trim())];
  const rights = String(form.get('rights')).split(' ');
  return [
    ...form.getAll('scope').map(String),
    ...rights.flatMap(right =>
      patterns.filter(Boolean).map(each => `${right}:notebook:${String(each)}`)
    )
  ];
}

/** Return what the server is asked for. */
export function requestOf(form: FormData): IMintToken {
  const caps = Object.keys(CAPS).map(cap => {
    const value = form.get(`caps.${cap}`);
    return [cap, value ? Number(value) : null];
  });
  return {
    label: String(form.get('label')).trim(),
    scopes: scopesOf(form),
    expires_in: Number(form.get('expires_in')),
    approval: (form.get('approval') || null) as ApprovalMode | null,
    edits: (form.get('edits') || null) as EditMode | null,
    caps: Object.fromEntries(caps) as IMintToken['caps']
  };
}
