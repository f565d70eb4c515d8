import { nullTranslator } from '@jupyterlab/translation';
import { AgentTokens } from '../../model/agenttokens';
import { firstDraft } from '../../model/tokendraft';
import { TokenForm } from '../../model/tokenform';
import { askForToken } from '../../widgets/tokenform';
import { showTokens } from '../../widgets/tokenlist';
import { showSecret } from '../../widgets/tokensecret';
import {
  accessText,
  accessWord,
  complaintText,
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

function form(server: FakeServer, label: string): TokenForm {
  return new TokenForm(server, { ...firstDraft({}, ''), label });
}

describe('the secret', () => {
  it('is in the page until the dialog is closed, and not after', async () => {
    const minted = await new FakeServer().mintToken({
      label: 'Claude\u202e',
      scopes: ['files'],
      expires_in: 60,
      approval: null,
      caps: token().caps
    });
    const closed = showSecret(minted, trans);
    await until(() => dialog()?.querySelector('[role="tabpanel"]'));
    expect(page()).toContain(minted.secret);
    expect(dialog()!.getAttribute('aria-label')).toBe(
      'Access for Claude\ufffd'
    );
    press('Escape');
    expect(dialog()).not.toBeNull();
    (await until(() => button('Done'))).click();
    await closed;
    expect(dialog()).toBeNull();
    expect(page()).not.toContain('_secret');
  });

  it('is shown for one client at a time, by the keys of tabs', async () => {
    const server = new FakeServer();
    const minted = (await form(server, 'Claude').submit())!;
    const closed = showSecret(minted, trans);
    const tab = (n: number) =>
      dialog()!.querySelectorAll<HTMLElement>('[role="tab"]')[n];
    const shown = () =>
      dialog()!.querySelector('[role="tabpanel"] pre')!.textContent;
    await until(() => dialog()?.querySelector('[role="tabpanel"]'));
    expect(shown()).toContain('Bearer');
    tab(0).focus();
    press('ArrowRight');
    expect(document.activeElement).toBe(tab(1));
    await until(() => shown()?.startsWith('curl'));
    press('ArrowRight');
    expect(document.activeElement).toBe(tab(0));
    press('End');
    expect(document.activeElement).toBe(tab(1));
    press('Home');
    press('ArrowLeft');
    expect(document.activeElement).toBe(tab(1));
    (await until(() => button('Done'))).click();
    await closed;
  });
});

describe('the form', () => {
  it('stays open until the server has given a token', async () => {
    const server = new FakeServer();
    const asked = form(server, '');
    const closed = askForToken(asked, trans);
    const name = await until(() => dialog()?.querySelector('input'));
    await until(() => document.activeElement === name);
    press('Enter');
    await until(() => dialog()!.textContent!.includes('Enter a name.'));
    expect(name.getAttribute('aria-invalid')).toBe('true');
    expect(server.calls).toEqual([]);
    asked.set({ label: 'Claude' }, 'label');
    press('Enter');
    expect((await closed)?.token.label).toBe('Claude');
    expect(dialog()).toBeNull();
  });

  it('lets buttons be pressed and leads round with Tab', async () => {
    const closed = askForToken(form(new FakeServer(), ''), trans);
    const fold = await until(() => button('Limits'));
    fold.focus();
    // The button's own business: not a reason to send the form.
    expect(press('Enter')).toBe(false);
    expect(press('ArrowRight')).toBe(false);
    (await until(() => button('Give access'))).focus();
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
      token({ label, expires_at }),
      token({ id: 't_2', label: 'Gone', status: 'revoked' })
    ];
    const closed = showTokens(new AgentTokens(server, server.events), trans);
    (await until(() => button('Revoke…'))).click();
    expect(dialog()!.textContent).toContain('<img src=x>\ufffd');
    expect(dialog()!.querySelector('img')).toBeNull();
    expect(dialog()!.textContent).toContain('1 expired or revoked token');
    expect(dialog()!.textContent).not.toContain('Gone');
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
      'Run code in scratch kernels',
      'Run code in a.ipynb, b/**',
      'Change and run cells of all notebooks',
      'Read all notebooks',
      'Read and write files in the folders where it works',
      'Read its own history',
      'Read the history of all agents'
    ]);
    expect(scopeLines(['read:notebook:a\u202eb'], trans)).toEqual([
      'Read a\ufffdb'
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

  it('say what is wrong in the units that were written', () => {
    const said = (field: 'label' | 'lifetime' | 'caps.kernels', text: string) =>
      complaintText(field, { kind: 'said', text }, trans);
    expect(said('lifetime', 'Expected `float` <= 2592000.0')).toBe(
      'At most 30 days.'
    );
    expect(said('lifetime', 'Expected `float` >= 60.0')).toBe(
      'At least 1 minute.'
    );
    expect(said('caps.kernels', 'Expected `int` <= 1000')).toBe(
      'At most 1,000.'
    );
    expect(said('label', 'Expected `str` of length <= 200')).toBe(
      'At most 200 characters.'
    );
    expect(said('label', 'Anything\u202e else')).toBe('Anything\ufffd else');
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
