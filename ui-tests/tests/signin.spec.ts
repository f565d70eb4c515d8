/** A program that adds the server's address signs in; the person agrees on a page. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test as base } from '@playwright/test';
import type { Page } from '@playwright/test';
import { violations } from './axe';

/** A program on this computer, to which the browser is sent back. */
class Program {
  private constructor(private readonly _server: Server) {}

  static async start(): Promise<Program> {
    const server = createServer((request, response) => {
      const url = new URL(request.url!, 'http://localhost');
      const framed = url.searchParams.get('frame');
      response.setHeader('Content-Type', 'text/html');
      response.end(
        framed ? `<iframe src="${framed}"></iframe>` : '<p>You can go back.</p>'
      );
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Program(server);
  }

  readonly verifier = randomBytes(32).toString('hex');

  get url(): string {
    const { port } = this._server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/callback`;
  }

  stop(): void {
    this._server.close();
  }
}

const test = base.extend<{ program: Program }>({
  program: async ({}, use) => {
    const program = await Program.start();
    await use(program);
    program.stop();
  }
});

/** Register a program; return its id, and the address to which it sends the person. */
async function register(
  page: Page,
  api: string,
  program: Program,
  name: string
): Promise<{ client_id: string; address: string }> {
  const registered = await page.request.post(`${api}/sign-in/register`, {
    data: { client_name: name, redirect_uris: [program.url] }
  });
  const { client_id } = (await registered.json()) as { client_id: string };
  const challenge = createHash('sha256').update(program.verifier);
  const query = new URLSearchParams({
    response_type: 'code',
    client_id,
    redirect_uri: program.url,
    code_challenge: challenge.digest('base64url'),
    code_challenge_method: 'S256',
    state: 'the state',
    resource: `${api}/mcp`
  });
  return { client_id, address: `${api}/sign-in/authorize?${query}` };
}

/** Register a program, and open the page on which the person decides. */
async function ask(
  page: Page,
  api: string,
  program: Program,
  name: string
): Promise<string> {
  const { client_id, address } = await register(page, api, program, name);
  await page.goto(address);
  return client_id;
}

/** A page of the same origin, as the server of another user may send on a hub. */
async function hostile(
  page: Page,
  baseURL: string,
  policy: string,
  body: string
): Promise<void> {
  await page.route('**/hostile', route =>
    route.fulfill({
      contentType: 'text/html',
      headers: { 'Cross-Origin-Opener-Policy': policy },
      body
    })
  );
  await page.goto(`${baseURL}/hostile`);
  await page.unroute('**/hostile');
}

test('a person gives a program access on a page that cannot be framed', async ({
  page,
  baseURL,
  program
}) => {
  const api = `${baseURL}/api/agent-exec`;
  const client_id = await ask(page, api, program, 'Claude Code');
  await expect(page.getByRole('heading')).toHaveText('Give an agent access?');
  const text = page.getByRole('main');
  await expect(text).toContainText('A program that calls itself Claude Code');
  await expect(text).toContainText(new URL(program.url).host);
  await expect(text).not.toContainText('Anonymous'); // Jupyter made that name up
  expect(await violations(page, 'main')).toEqual([]);
  const consent = page.url();

  // What is wrong is said on the page, and what was typed stays.
  const notebooks = page.getByLabel('Notebooks it may use');
  await notebooks.fill('../secrets.ipynb');
  await page.getByLabel('Name', { exact: true }).fill('My Claude');
  await page.getByRole('button', { name: 'Give access' }).click();
  await expect(page.getByRole('alert')).toContainText('is not a pattern');
  await expect(page.getByLabel('Name', { exact: true })).toHaveValue(
    'My Claude'
  );
  await notebooks.fill('reports/*.ipynb');
  await page.getByLabel('How long').selectOption('1 hour');
  await page.getByRole('button', { name: 'Give access' }).click();
  await expect(page.getByText('You can go back.')).toBeVisible();

  const sent = new URL(page.url()).searchParams;
  expect(sent.get('state')).toBe('the state');
  const exchanged = await page.request.post(`${api}/sign-in/token`, {
    form: {
      grant_type: 'authorization_code',
      client_id,
      code: sent.get('code')!,
      redirect_uri: program.url,
      code_verifier: program.verifier
    }
  });
  const { access_token } = (await exchanged.json()) as { access_token: string };
  const id = access_token.split('_').slice(1, 3).join('_');
  const listed = await page.request.get(`${api}/tokens`);
  const { tokens } = (await listed.json()) as {
    tokens: { id: string; label: string; scopes: string[] }[];
  };
  expect(tokens.find(token => token.id === id)).toMatchObject({
    label: 'My Claude',
    scopes: ['look:notebook:reports/*.ipynb']
  });
  await page.request.delete(`${api}/tokens/${id}`);

  // A page that shows it in a frame shows nothing.
  const framed = encodeURIComponent(consent);
  await page.goto(`${program.url}?frame=${framed}`);
  const frame = page.frames()[1];
  await expect(page.locator('iframe')).toBeVisible();
  await expect(frame.getByRole('heading')).toHaveCount(0);
  expect(frame.url()).not.toContain('sign-in');
});

test('a person refuses, in the dark', async ({ page, baseURL, program }) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  const api = `${baseURL}/api/agent-exec`;
  await ask(page, api, program, '\u202e<img src=x onerror=alert(1)>');
  await expect(page.locator('img')).toHaveCount(0);
  await expect(page.getByRole('main')).toContainText('<img src=x');
  expect(await violations(page, 'main')).toEqual([]);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByText('You can go back.')).toBeVisible();
  expect(new URL(page.url()).searchParams.get('error')).toBe('access_denied');
  await page.goBack();
  await page.reload();
  await expect(page.getByRole('alert')).toContainText('Start again');
});

test('a page of the same origin reaches nothing of a page that it opens', async ({
  page,
  baseURL,
  program
}) => {
  const api = `${baseURL}/api/agent-exec`;
  const { address } = await register(page, api, program, 'Hostile');
  const atOnce = 'opened = window.open(address)';
  const later = 'opened = window.open(); opened.location = address';
  for (const [policy, opens, shown] of [
    ['unsafe-none', atOnce, address],
    ['same-origin', later, address],
    ['noopener-allow-popups', atOnce, address],
    ['noopener-allow-popups', later, address],
    ['unsafe-none', later, `${api}/access?notebook=a.ipynb`]
  ]) {
    await hostile(
      page,
      baseURL!,
      policy,
      `<script>const address = ${JSON.stringify(shown)}; let opened</script>
       <button onclick="${opens}">Play</button>`
    );
    const opening = page.context().waitForEvent('page');
    await page.getByRole('button').click();
    const popup = await opening;
    const give = popup.getByRole('button', { name: 'Give access' });
    await expect(give).toBeVisible();
    const clicks = `try {
      opened.document.querySelector('button.main').click(); 'clicked'
    } catch (error) { opened.closed ? 'closed' : String(error) }`;
    expect(await page.evaluate(clicks)).toBe('closed');
    await expect(give).toBeVisible();
    expect(popup.url()).toContain(api);
    await popup.close();
  }
});

test('a page of the same origin sends no answer of its own', async ({
  page,
  baseURL,
  program
}) => {
  const api = `${baseURL}/api/agent-exec`;
  await ask(page, api, program, 'Hostile');
  const consent = page.url();
  const key = new URL(consent).searchParams.get('key');
  const tokens = async () =>
    (await (await page.request.get(`${api}/tokens`)).json()) as unknown;
  const before = await tokens();
  const xsrf = (await page.context().cookies()).find(
    ({ name }) => name === '_xsrf'
  )!.value;
  const filledIn = { key, _xsrf: xsrf, scope: 'exec:scratch', label: 'x' };
  const fields = Object.entries({ ...filledIn, expires_in: 3600 }).map(
    ([name, value]) => `<input name="${name}" value="${value}">`
  );
  for (const action of [`${api}/sign-in/consent`, `${api}/access`]) {
    await hostile(
      page,
      baseURL!,
      'unsafe-none',
      `<form method="post" action="${action}">${fields.join('')}
       <button name="decision" value="allow">Play</button></form>`
    );
    for (const address of [consent, `${api}/access`]) {
      const read = `fetch('${address}').then(async answer =>
        [answer.status, (await answer.text()).includes('name="nonce"')])`;
      expect(await page.evaluate(read)).toEqual([403, false]);
    }
    await page.getByRole('button').click();
    await expect(page.getByRole('alert')).toContainText(
      'No click on this page'
    );
  }
  expect(await tokens()).toEqual(before);
});
