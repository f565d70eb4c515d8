import { nullTranslator } from '@jupyterlab/translation';
import { ApiError } from '../../api/errors';
import { AgentTokens } from '../../model/agenttokens';
import { askForToken } from '../../widgets/tokenform';
import { showTokens } from '../../widgets/tokenlist';
import { showSecret } from '../../widgets/tokensecret';
import {
  accessText,
  accessWord,
  capLines,
  endText,
  scopeLines,
  usedText
} from '../../widgets/tokenwording';
import { FakeServer, session, token } from '../fakes';

const trans = nullTranslator.load('');

const NOW = Date.parse('2026-01-02T04:04:05.000Z');

/** Wait until something is true of the page: it draws when it has time. */
async function until<T>(look: () => T | null | undefined | false): Promise<T> {
  for (;;) {
    const seen = look();
    if (seen) {
      return seen;
    }
    await new Promise(requestAnimationFrame);
  }
}

function dialog(): HTMLElement | null {
  return document.querySelector<HTMLElement>('.jp-AgentExecDialog');
}

function button(text: string): HTMLButtonElement | undefined {
  return Array.from(dialog()?.querySelectorAll('button') ?? []).find(
    each => each.textContent === text
  );
}

/** Press a key where the keyboard is; whether anything made use of it. */
function press(key: string, shiftKey = false): boolean {
  const event = new KeyboardEvent('keydown', {
    key,
    shiftKey,
    bubbles: true,
    cancelable: true
  });
  return !document.activeElement!.dispatchEvent(event);
}

/** All that the page shows or keeps. */
function page(): string {
  return JSON.stringify([
    document.documentElement.outerHTML,
    { ...localStorage },
    { ...sessionStorage },
    location.href
  ]);
}

function field<T extends HTMLElement = HTMLInputElement>(name: string): T {
  return dialog()?.querySelector<T>(`[name="${name}"]`) as T;
}

describe('the secret', () => {
  async function shown(server: FakeServer) {
    const minted = await server.mintToken({
      label: 'Claude\u202e',
      scopes: ['files'],
      expires_in: 60,
      approval: null,
      edits: null,
      caps: token().caps
    });
    const closed = showSecret(minted, trans);
    await until(() => dialog()?.querySelector('pre'));
    return { closed, secret: minted.secret };
  }

  it('is in the page until the dialog is closed, and not after', async () => {
    const { closed, secret } = await shown(new FakeServer());
    expect(page()).toContain(secret);
    expect(dialog()!.textContent).not.toContain('pip install');
    expect(dialog()!.getAttribute('aria-label')).toBe(
      'Access for Claude\ufffd'
    );
    expect(document.activeElement).toBe(button('Copy the token'));
    press('Escape');
    expect(dialog()).not.toBeNull();
    (await until(() => button('Done'))).click();
    await closed;
    expect(dialog()).toBeNull();
    expect(page()).not.toContain('_secret');
  });

  it('is ready to paste for one client at a time', async () => {
    const server = new FakeServer();
    server.mcpInstalled = false;
    const { closed } = await shown(server);
    const text = () => dialog()!.querySelector('pre')!.textContent;
    expect(text()).toContain('Bearer');
    const client = dialog()!.querySelector('select')!;
    client.focus();
    press('Enter');
    expect(dialog()).not.toBeNull();
    client.value = 'curl';
    client.dispatchEvent(new Event('change', { bubbles: true }));
    await until(() => text()?.startsWith('curl'));
    expect(dialog()!.querySelector('[role="note"]')!.textContent).toContain(
      "pip install 'jupyter-agent-exec[mcp]'"
    );
    (await until(() => button('Done'))).click();
    await closed;
  });
});

describe('the form', () => {
  it('gives access with one key, to the notebook in front', async () => {
    const server = new FakeServer();
    const mint = jest.spyOn(server, 'mintToken');
    const closed = askForToken(server, 'a/b.ipynb', trans);
    await until(() => field('label')?.matches(':focus'));
    expect(dialog()!.textContent).toContain('Work in a/b.ipynb');
    press('Enter');
    expect((await closed)?.token.label).toBe('AI agent');
    expect(dialog()).toBeNull();
    expect(mint).toHaveBeenCalledWith({
      label: 'AI agent',
      scopes: [
        'exec:scratch',
        'exec:notebook:a/b.ipynb',
        'edit:notebook:a/b.ipynb'
      ],
      expires_in: 28_800,
      approval: null,
      edits: null,
      caps: {
        executions_per_minute: null,
        concurrent_executions: null,
        kernels: null,
        wall_seconds: null,
        output_bytes: null
      }
    });
  });

  it('sends what was chosen among more options', async () => {
    const server = new FakeServer();
    const mint = jest.spyOn(server, 'mintToken');
    const closed = askForToken(server, 'a.ipynb', trans);
    await until(() => field('label')?.matches(':focus'));
    field('label').value = ' Claude ';
    field('notebook').click();
    field('scope').click();
    field('patterns').value = ' b/** \n\nc.ipynb';
    field('rights').value = 'read';
    dialog()!.querySelector<HTMLElement>('[value="history:read:all"]')!.click();
    field('expires_in').value = '3600';
    field('approval').value = 'always';
    field('edits').value = 'apply';
    field('caps.kernels').value = '2';
    press('Enter');
    await closed;
    const [[asked]] = mint.mock.calls;
    expect(asked).toMatchObject({
      label: 'Claude',
      scopes: [
        'history:read:all',
        'read:notebook:b/**',
        'read:notebook:c.ipynb'
      ],
      expires_in: 3600,
      approval: 'always',
      edits: 'apply',
      caps: { kernels: 2, wall_seconds: null }
    });
  });

  it('stays open at what is wrong, here or for the server', async () => {
    const server = new FakeServer();
    const closed = askForToken(server, '', trans);
    await until(() => field('label')?.matches(':focus'));
    const alert = () => dialog()!.querySelector('[role="alert"]')!.textContent;
    field('label').value = ' ';
    press('Enter');
    field('label').value = 'Claude';
    field('caps.kernels').value = '0';
    press('Enter');
    expect(document.activeElement).toBe(field('caps.kernels'));
    expect(dialog()!.querySelector('details')!.open).toBe(true);
    field('caps.kernels').value = '';
    field('scope').click();
    press('Enter');
    await until(() => alert() === 'Select what the agent may do.');
    expect(server.calls).toEqual([]);
    field('scope').click();
    server.failure = new ApiError(
      'refused',
      'expires_in: 28800 seconds is more than the server\u2019s 60.\u202e',
      400,
      'invalid_request',
      'expires_in'
    );
    press('Enter');
    await until(
      () => alert() === '28800 seconds is more than the server\u2019s 60.\ufffd'
    );
    expect(document.activeElement).toBe(field('expires_in'));
    expect(field('expires_in').getAttribute('aria-invalid')).toBe('true');
    server.failure = new ApiError('unreachable', 'gone');
    button('Give access')!.click();
    await until(() => alert()!.startsWith('The server cannot be reached'));
    server.failure = null;
    button('Give access')!.click();
    expect((await closed)?.token.label).toBe('Claude');
  });

  it('revokes what was minted for a user who has cancelled', async () => {
    const server = new FakeServer();
    const closed = askForToken(server, '', trans);
    await until(() => field('label')?.matches(':focus'));
    press('Enter');
    press('Enter');
    press('Escape');
    expect(await closed).toBeNull();
    await until(() => server.calls.length === 2);
    expect(server.calls).toEqual(['mint AI agent: exec:scratch', 'revoke t_1']);
  });

  it('lets its keys be used and leads round with Tab', async () => {
    const closed = askForToken(new FakeServer(), '', trans);
    await until(() => field('label')?.matches(':focus'));
    dialog()!.querySelector('summary')!.focus();
    // The summary's own business: not a reason to send the form.
    expect(press('Enter')).toBe(false);
    button('Give access')!.focus();
    expect(press('Tab')).toBe(true);
    const first = document.activeElement!;
    expect(dialog()!.contains(first)).toBe(true);
    expect(first).not.toBe(button('Give access'));
    expect(press('Tab')).toBe(false);
    expect(press('Tab', true)).toBe(true);
    expect(document.activeElement).toBe(button('Give access'));
    press('Escape');
    expect(await closed).toBeNull();
  });
});

describe('the list', () => {
  it('shows names as text, and asks before it revokes', async () => {
    const server = new FakeServer();
    const expires_at = '2126-01-02T03:04:05.000Z';
    const label = '<img src=x>\u202e';
    server.tokens = [
      token({ label, expires_at, edits: 'apply' }),
      token({ id: 't_2', label: 'Gone', status: 'revoked' })
    ];
    const closed = showTokens(new AgentTokens(server, server.events), trans);
    (await until(() => button('Revoke…'))).click();
    expect(dialog()!.textContent).toContain('<img src=x>\ufffd');
    expect(dialog()!.textContent).toContain('Change cells at once');
    expect(dialog()!.querySelector('img')).toBeNull();
    expect(dialog()!.textContent).toContain('1 expired or revoked token');
    expect(dialog()!.querySelector('details')!.textContent).toContain('Gone');
    expect(dialog()!.querySelector('details')!.open).toBe(false);
    (await until(() => button('Keep'))).click();
    (await until(() => button('Revoke…'))).click();
    expect(server.calls).toEqual(['tokens']);
    (await until(() => button('Revoke'))).click();
    await until(() =>
      dialog()!.textContent!.includes('2 expired or revoked tokens')
    );
    expect(server.calls.slice(0, 2)).toEqual(['tokens', 'revoke t_1']);
    press('Escape');
    expect(await closed).toBe(false);
  });
});

describe('words', () => {
  it('say what scopes let an agent do', () => {
    expect(
      scopeLines(
        [
          'exec:scratch',
          'exec:notebook:a.ipynb',
          'exec:notebook:b/**',
          'edit:notebook',
          'read:notebook:**',
          'files',
          'history:read',
          'history:read:all'
        ],
        trans
      )
    ).toEqual([
      'Run code in kernels of its own',
      'Run code: a.ipynb',
      'Run code: b/**',
      'Change cells and run them: all notebooks',
      'Read: all notebooks',
      'Read and write files in the folders where it works',
      'Read its own history',
      'Read the history of all agents'
    ]);
    expect(scopeLines(['read:notebook:a\u202eb'], trans)).toEqual([
      'Read: a\ufffdb'
    ]);
  });

  it('say when a token ends, and when it was used', () => {
    const end = (given = {}, status = token().status) =>
      endText(token(given), status, NOW, trans);
    expect(end()).toBe('Expires in 7 hours');
    expect(end({ expires_at: '2026-01-12T03:04:05Z' })).toBe(
      'Expires in 10 days'
    );
    expect(end({ expires_at: '2026-01-02T05:04:05Z' })).toBe(
      'Expires in 60 minutes'
    );
    expect(end({ expires_at: '2026-01-02T04:04:04Z' }, 'expired')).toBe(
      'Expired 1 minute ago'
    );
    expect(end({ revoked_at: '2026-01-02T04:00:05Z' }, 'revoked')).toBe(
      'Revoked 4 minutes ago'
    );
    const used = (last_used_at: string | null) =>
      usedText(token({ last_used_at }), NOW, trans);
    expect(used(null)).toBe('Never used');
    expect(used('2026-01-02T04:01:05Z')).toBe('Last used 3 minutes ago');
  });

  it('say which limits a token has', () => {
    const { caps } = token();
    expect(
      capLines({ ...caps, kernels: 2000, completion: false }, trans)
    ).toEqual([
      'Sessions open at once: at most 2,000',
      'No completions or documentation from kernels'
    ]);
  });

  it('say by what right an agent works', () => {
    const full = session({ username: 'ada\u202e' });
    expect(accessWord(full, trans)).toBe('Full access');
    expect(accessText(full, trans)).toBe(
      'Full access: the agent has the same permissions as ada\ufffd'
    );
    const limited = session({
      access: 'token',
      token: { id: 't_1', label: 'Claude\u202e' }
    });
    expect(accessWord(limited, trans)).toBe('Claude\ufffd');
    expect(accessText(limited, trans)).toBe(
      'With the agent token “Claude\ufffd”'
    );
  });
});
