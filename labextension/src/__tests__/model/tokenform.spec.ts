import { ApiError } from '../../api/errors';
import { complaintsOf, fieldOf, firstDraft } from '../../model/tokendraft';
import { requestOf, scopesOf } from '../../model/tokendraft';
import type { Allowed, ITokenDraft } from '../../model/tokendraft';
import { TokenForm } from '../../model/tokenform';
import { FakeServer } from '../fakes';

/** A draft that can be sent, but for what is given. */
function draft(given: Partial<ITokenDraft> = {}): ITokenDraft {
  return { ...firstDraft({}, ''), label: ' Claude ', ...given };
}

function allowing(...allowed: Allowed[]): Partial<ITokenDraft> {
  return { allowed: new Set(allowed) };
}

describe('a draft', () => {
  it('begins with what the settings say, for the notebook in front', () => {
    const settings = {
      lifetime: 0.5,
      scopes: ['files', 'read:notebook', 'exec:scratch', 'everything']
    };
    const first = firstDraft(settings, 'a/b.ipynb');
    expect(first.patterns).toBe('a/b.ipynb');
    expect(first.lifetime).toBe('0.5');
    expect(Array.from(first.allowed)).toEqual([
      'exec:scratch',
      'read:notebook',
      'files'
    ]);
    expect(Array.from(firstDraft(settings, '').allowed)).toEqual([
      'exec:scratch',
      'files'
    ]);
  });

  it('is asked for in seconds, with a scope for each notebook', () => {
    const asked = requestOf(
      draft({
        ...allowing('exec:scratch', 'exec:notebook', 'read:notebook'),
        patterns: ' a.ipynb \n\nb/**\n',
        lifetime: '1.5',
        unit: 'days',
        approval: 'always',
        caps: { ...draft().caps, kernels: ' 2 ' }
      })
    );
    expect(asked).toEqual({
      label: 'Claude',
      scopes: [
        'exec:scratch',
        'exec:notebook:a.ipynb',
        'exec:notebook:b/**',
        'read:notebook:a.ipynb',
        'read:notebook:b/**'
      ],
      expires_in: 129_600,
      approval: 'always',
      caps: {
        executions_per_minute: null,
        concurrent_executions: null,
        wall_seconds: null,
        output_bytes: null,
        kernels: 2
      }
    });
  });

  it('allows nothing in notebooks that are only written down', () => {
    const written = draft({ ...allowing('files'), patterns: 'a.ipynb' });
    expect(scopesOf(written)).toEqual(['files']);
  });

  it.each([
    [{ label: ' ' }, 'label', 'missing'],
    [allowing(), 'allowed', 'missing'],
    [{ ...allowing('edit:notebook'), patterns: ' \n' }, 'patterns', 'missing'],
    [{ lifetime: '' }, 'lifetime', 'number'],
    [{ lifetime: '-1' }, 'lifetime', 'number'],
    [{ lifetime: 'Infinity' }, 'lifetime', 'number'],
    [{ caps: { ...draft().caps, kernels: '1.5' } }, 'caps.kernels', 'number'],
    [
      { caps: { ...draft().caps, wall_seconds: 'long' } },
      'caps.wall_seconds',
      'number'
    ]
  ])('is wrong with %j', (given, field, kind) => {
    expect(Array.from(complaintsOf(draft(given)))).toEqual([[field, { kind }]]);
  });

  it('may have half a second as a bound', () => {
    const caps = { ...draft().caps, wall_seconds: '0.5' };
    expect(complaintsOf(draft({ caps })).size).toBe(0);
  });

  it.each([
    ['label', 'label'],
    ['approval', 'approval'],
    ['expires_in', 'lifetime'],
    ['caps.kernels', 'caps.kernels'],
    ['scopes', 'allowed'],
    ['scopes[0]', 'allowed'],
    ['scopes[1]', 'patterns'],
    ['scopes[7]', 'allowed'],
    ['session_id', null],
    [null, null]
  ])('knows the field that the server calls %s', (named, field) => {
    const given = allowing('files', 'exec:notebook');
    expect(fieldOf(named, draft({ ...given, patterns: 'a' }))).toBe(field);
  });
});

describe('TokenForm', () => {
  let server: FakeServer;

  beforeEach(() => {
    server = new FakeServer();
  });

  it('asks for what is written, once, and keeps no secret', async () => {
    const form = new TokenForm(server, draft());
    const pending: boolean[] = [];
    form.changed.connect(() => pending.push(form.isPending));
    const [first, second] = await Promise.all([form.submit(), form.submit()]);
    expect(first?.secret).toBe('jaex_t_1_secret');
    expect(second).toBeNull();
    expect(server.calls).toEqual(['mint Claude: exec:scratch']);
    expect(pending).toEqual([true, false]);
    const kept = JSON.stringify(form, (name, value) =>
      ['_api', '_changed'].includes(name) ? undefined : value
    );
    expect(kept).toContain('Claude');
    expect(kept).not.toContain('_secret');
  });

  it('asks for nothing while something is wrong, until it is written', async () => {
    const form = new TokenForm(server, draft({ label: '', lifetime: '0' }));
    expect(await form.submit()).toBeNull();
    expect(server.calls).toEqual([]);
    expect(form.refusals).toBe(1);
    expect(Array.from(form.complaints.keys())).toEqual(['label', 'lifetime']);
    form.set({ label: 'Claude' }, 'label');
    expect(Array.from(form.complaints.keys())).toEqual(['lifetime']);
    form.set({ lifetime: '1' }, 'lifetime');
    expect(await form.submit()).not.toBeNull();
  });

  it('says at its field what the server says of it', async () => {
    const form = new TokenForm(server, draft());
    server.failure = new ApiError(
      'refused',
      'expires_in: 28800 seconds is more than the server’s 60.',
      400,
      'invalid_request',
      'expires_in'
    );
    expect(await form.submit()).toBeNull();
    const text = '28800 seconds is more than the server’s 60.';
    expect(Array.from(form.complaints)).toEqual([
      ['lifetime', { kind: 'said', text }]
    ]);
    expect(form.failure).toBeNull();
    expect(form.isPending).toBe(false);
    expect(form.draft.label).toBe(' Claude ');
  });

  it('says what is about no field, until it is tried again', async () => {
    const form = new TokenForm(server, draft());
    server.failure = new ApiError('unreachable', 'gone');
    expect(await form.submit()).toBeNull();
    expect(form.failure).toBe(server.failure);
    expect(form.refusals).toBe(1);
    server.failure = null;
    expect(await form.submit()).not.toBeNull();
    expect(form.failure).toBeNull();
  });

  it('revokes what was minted for a person who had gone by then', async () => {
    const form = new TokenForm(server, draft());
    const submitted = form.submit();
    form.giveUp();
    expect(await submitted).toBeNull();
    expect(server.calls).toEqual(['mint Claude: exec:scratch', 'revoke t_1']);
  });
});
