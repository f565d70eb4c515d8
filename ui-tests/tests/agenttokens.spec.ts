/** A person gives an agent access, sees what was given, and takes it back. */
import { expect } from '@jupyterlab/galata';
import { request as requests } from '@playwright/test';
import type { Locator, Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { codeCell, Files, OpenNotebook } from './notebook';
import { leaveDialog, test as panelTest } from './panel';
import type { Panel } from './panel';

const THEMES = ['JupyterLab Dark', 'JupyterLab Light'];

/** A token as the server lists it. */
interface IToken {
  id: string;
  label: string;
  scopes: string[];
  status: string;
  caps: { kernels: number | null };
}

/** Tests whose tokens are revoked afterwards. */
const test = panelTest.extend<{
  access: Access;
}>({
  access: async ({ page, panel, baseURL }, use, { testId }) => {
    const access = new Access(page, panel, `${baseURL}/api/agent-exec`, testId);
    await use(access);
    await access.end();
  }
});

/** The dialogs, and the routes behind them. */
class Access {
  constructor(
    private readonly _page: Page,
    private readonly _panel: Panel,
    private readonly _api: string,
    testId: string
  ) {
    this.name = `Claude ${testId.slice(-6)}`;
  }

  /** What the token of this test is called. */
  readonly name: string;

  get dialog(): Locator {
    return this._page.getByRole('dialog');
  }

  button(name: string | RegExp): Locator {
    return this.dialog.getByRole('button', { name });
  }

  field(name: string): Locator {
    return this.dialog.getByRole('textbox', { name });
  }

  /** What opens the list. */
  get opener(): Locator {
    return this._panel.button('Agent Tokens…');
  }

  /** List the tokens. */
  async list(): Promise<void> {
    await this.opener.click();
    await this.dialog.waitFor();
  }

  /** Open the form, from the list. */
  async give(): Promise<void> {
    await this.list();
    await this.button('Give an agent access…').click();
    await expect(this.field('Name')).toBeFocused();
  }

  /** Have a token minted behind the page's back; its secret. */
  async mint(scopes = ['exec:scratch']): Promise<[IToken, string]> {
    const response = await this._page.request.post(`${this._api}/tokens`, {
      data: { label: this.name, scopes }
    });
    expect(response.status(), await response.text()).toBe(201);
    const { secret, token } = await response.json();
    return [token, secret];
  }

  async revoke({ id }: IToken): Promise<void> {
    await this._page.request.delete(`${this._api}/tokens/${id}`);
  }

  /** The tokens of this test. */
  async tokens(): Promise<IToken[]> {
    const response = await this._page.request.get(`${this._api}/tokens`);
    const { tokens } = (await response.json()) as { tokens: IToken[] };
    return tokens.filter(({ label }) => label.startsWith(this.name));
  }

  /** Open a session with nothing but a secret. */
  async work(secret: string, title: string): Promise<void> {
    const agent = await requests.newContext({
      extraHTTPHeaders: { Authorization: `Bearer ${secret}` }
    });
    const response = await agent.post(`${this._api}/sessions`, {
      data: { agent: { name: 'analyst' }, title }
    });
    expect(response.status(), await response.text()).toBe(201);
    const { id } = await response.json();
    const executions = `${this._api}/sessions/${id}/executions`;
    await agent.post(executions, { data: { source: '1 + 1', wait: 30 } });
    await agent.dispose();
  }

  async end(): Promise<void> {
    for (const token of await this.tokens()) {
      await this.revoke(token);
    }
  }
}

/** All places in which a page could keep something. */
async function kept(page: Page, baseURL: string): Promise<string> {
  const inPage = await page.evaluate(() =>
    JSON.stringify([
      document.documentElement.outerHTML,
      Array.from(document.querySelectorAll('input, textarea'), each => {
        return (each as HTMLInputElement).value;
      }),
      { ...localStorage },
      { ...sessionStorage },
      history.state,
      location.href
    ])
  );
  const answers = await Promise.all(
    ['lab/api/workspaces', 'lab/api/settings'].map(route =>
      page.request.get(`${baseURL}/${route}`)
    )
  );
  const onServer = await Promise.all(answers.map(each => each.text()));
  return [inPage, ...onServer].join('\n');
}

test('a token is given, and its secret is shown once', async ({
  page,
  panel,
  access,
  baseURL
}) => {
  const logged: string[] = [];
  page.on('console', message => logged.push(message.text()));
  await panel.open();
  await access.give();
  await expect(access.field('Name')).toHaveValue('AI agent');
  await page.keyboard.type(access.name);
  await expectAccessible(page, THEMES);
  await access.dialog.getByText('More options').click();
  await access.field('Other notebooks').fill('reports/*.ipynb\n../secret');
  await access.dialog.getByLabel('In notebooks it may').selectOption('exec');
  const sessions = access.dialog.getByLabel('Sessions open at once');
  await sessions.fill('2000');
  // What the browser checks, and what the server has to say.
  await expect(access.button('Give access')).toBeDisabled();
  await sessions.fill('3');
  await access.button('Give access').click();
  await expect(access.field('Other notebooks')).toBeFocused();
  await expect(access.dialog.getByRole('alert')).toContainText(
    'is not a pattern of contents paths'
  );
  await expectAccessible(page, THEMES);
  expect(await access.tokens()).toEqual([]);
  await access.field('Other notebooks').fill('reports/*.ipynb');
  await access.button('Give access').click();

  const copy = access.button('Copy the token');
  await expect(copy).toBeFocused();
  const secret = (await access.dialog.locator('pre').last().textContent())!;
  expect(secret).toMatch(/^jaex_t_/);
  await expect(access.dialog).toContainText('not shown again');
  await expectAccessible(page, THEMES);
  await copy.press('Enter');
  await expect(access.dialog.getByText('Copied')).toBeVisible();
  const client = access.dialog.getByLabel('Connect');
  const text = access.dialog.locator('pre').first();
  await expect(text).toContainText(`claude mcp add --transport http`);
  await expect(text).toContainText(`${baseURL}/api/agent-exec/mcp`);
  await client.selectOption('mcp-stdio');
  await expect(text).toContainText('JUPYTER_AGENT_EXEC_TOKEN');
  await client.selectOption('curl');
  await expect(text).toContainText('curl -H');
  // Nothing but the button closes it: there is no second look.
  await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  await expect(copy).toBeVisible();
  await access.button('Done').click();
  await expect(access.dialog).toHaveCount(0);
  const [hidden] = secret.split('_').slice(-1);
  expect(await kept(page, baseURL!)).not.toContain(hidden);
  expect(logged.join('\n')).not.toContain(hidden);

  const [token] = await access.tokens();
  expect(token.scopes).toEqual([
    'exec:scratch',
    'exec:notebook:reports/*.ipynb'
  ]);
  expect(token.caps.kernels).toBe(3);
  const box = panel.region.getByRole('textbox', { name: 'Search all' });
  await box.press('ControlOrMeta+v');
  await expect(box).toHaveValue(secret);
  await box.fill('');

  await access.work(secret, 'With a token: seen');
  const session = panel.session('With a token: seen');
  await expect(session).toContainText(access.name);
  await session.click();
  await expect(panel.region).toContainText(
    `With the agent token “${access.name}”`
  );
});

test('tokens are listed and revoked, here and elsewhere', async ({
  page,
  panel,
  access
}) => {
  const [token, secret] = await access.mint([
    'exec:scratch',
    'read:notebook:**'
  ]);
  await access.work(secret, 'To be revoked');
  await panel.open();
  await panel.session('To be revoked').click();
  await access.list();
  const item = access.dialog.getByRole('listitem').filter({
    has: page.getByText(access.name, { exact: true })
  });
  await expect(item).toContainText('Run code in kernels of its own');
  await expect(item).toContainText('Read: all notebooks');
  await expect(item).toContainText('Expires in 8 hours');
  await expect(item).toContainText(/Last used \d+ minutes? ago/);
  await expectAccessible(page, THEMES);

  // Minted elsewhere: nobody asked this page to look.
  const [other] = await access.mint();
  await expect(item).toHaveCount(2);
  await access.revoke(other);
  await expect(item).toHaveCount(1);
  await access.dialog.getByText(/expired or revoked token/).click();
  await expect(item).toHaveCount(2);
  await expect(item.last()).toContainText(/Revoked \d+ minutes? ago/);

  const revoke = access.button(`Revoke ${access.name}…`);
  await revoke.press('Enter');
  await expect(access.button('Keep')).toBeFocused();
  await expectAccessible(page, THEMES);
  await page.keyboard.press('Enter');
  await expect(revoke).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(access.button('Keep')).toBeFocused();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(revoke).toHaveCount(0);
  const statuses = async () =>
    (await access.tokens()).map(({ status }) => status);
  await expect.poll(statuses).toEqual(['revoked', 'revoked']);
  // Where the keyboard was is gone: it stays in the dialog.
  const isInside = () =>
    access.dialog.evaluate(node => node.contains(document.activeElement));
  await expect.poll(isInside).toBe(true);
  await leaveDialog(page);
  await expect(panel.region).toContainText(
    'Closed: its agent token was revoked'
  );
  expect(token.label).toBe(access.name);
});

test('without tokens it says what they are for, and gives one', async ({
  page,
  request,
  baseURL,
  tmpPath,
  panel,
  access,
  newAgent
}) => {
  const agent = await newAgent('With full access: seen');
  await agent.run('1 + 1');
  await page.route('**/api/agent-exec/tokens', route =>
    route.fulfill({ json: { tokens: [] } })
  );
  await panel.open();
  const session = panel.session('With full access: seen');
  await expect(session).toContainText('Full access');
  await session.click();
  await expect(panel.region).toContainText(
    'the agent has the same permissions as'
  );
  await access.list();
  await expect(access.dialog).toContainText('No agent has a token yet');
  await expectAccessible(page, THEMES);
  await access.button('Give an agent access…').click();
  await expect(access.field('Name')).toBeVisible();
  await leaveDialog(page);
  await expect(access.opener).toBeFocused();

  // The way from a new tab, and from a notebook.
  await page.menu.clickMenuItem('File>New Launcher');
  await page
    .locator('.jp-LauncherCard:visible')
    .filter({ hasText: 'Connect an AI Agent' })
    .click();
  await expect(access.field('Name')).toBeFocused();
  await leaveDialog(page);
  const path = `${tmpPath}/in-front.ipynb`;
  await new Files(request, baseURL!).write(path, [codeCell('mine', 'x = 1')]);
  await OpenNotebook.open(page, path);
  await page
    .getByRole('button', { name: 'Give an agent access to this notebook' })
    .click();
  const work = access.dialog.getByLabel(/^Work in .*in-front\.ipynb$/);
  await expect(work).toBeChecked();
  await access.dialog.getByText('More options').click();
  const approval = access.dialog.getByLabel('What needs your approval');
  await expect(approval.locator(':checked')).toHaveText(
    'Server default (never ask)'
  );
  await leaveDialog(page);
});
