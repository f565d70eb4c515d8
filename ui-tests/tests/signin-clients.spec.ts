/** Programs that others wrote sign in: a person logs in to Jupyter and agrees in this browser. */
import {
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  writeFile
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test as base } from '@playwright/test';
import type { Page } from '@playwright/test';
import { Process, PROJECT } from './process';

const CLIENTS = join(PROJECT, 'tests', 'mcp', 'clients');
const PROGRAMS = join(CLIENTS, 'node_modules', '.bin');
const TOKEN = 'the-token-of-the-person';

/** How programs are started, with folders of their own. */
interface IPlace {
  url: string;
  env: NodeJS.ProcessEnv;
  /** The file that has the address with which a program opened its browser. */
  opened: string;
}

const test = base.extend<
  { start: (command: string, ...args: string[]) => Process },
  { place: IPlace }
>({
  place: [
    async ({}, use) => {
      const folder = await mkdtemp(join(tmpdir(), 'agent-exec-sign-in-'));
      const opened = join(folder, 'opened');
      const browser = join(folder, 'browser');
      await mkdir(join(folder, 'root'));
      await writeFile(
        browser,
        `#!/bin/sh\nprintf %s "$1" > '${opened}.part'\nmv '${opened}.part' '${opened}'\n`
      );
      await chmod(browser, 0o700);
      const env: NodeJS.ProcessEnv = {
        ...process.env,
        BROWSER: browser,
        HOME: folder,
        JUPYTER_CONFIG_DIR: join(folder, 'config'),
        JUPYTER_DATA_DIR: join(folder, 'data'),
        JUPYTER_RUNTIME_DIR: join(folder, 'runtime'),
        MCP_AUTO_OPEN_ENABLED: 'true',
        MCP_REMOTE_CONFIG_DIR: folder
      };
      delete env.DISPLAY;
      delete env.WAYLAND_DISPLAY;
      const server = new Process(
        'python',
        [
          join('tests', 'announcing_server.py'),
          "--ServerApp.jpserver_extensions={'jupyter_agent_exec': True}",
          '--ServerApp.ip=127.0.0.1',
          '--ServerApp.port=0',
          '--ServerApp.open_browser=False',
          '--ServerApp.allow_root=True',
          `--ServerApp.root_dir=${join(folder, 'root')}`,
          `--IdentityProvider.token=${TOKEN}`
        ],
        env
      );
      const { url } = JSON.parse(await server.line());
      await use({ url: `${url.split('?')[0]}api/agent-exec`, env, opened });
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
    { scope: 'worker' }
  ],
  start: async ({ place }, use) => {
    const started: Process[] = [];
    await use((command, ...args) => {
      started.push(new Process(command, args, place.env));
      return started[started.length - 1];
    });
    for (const each of started) {
      await each.stop();
    }
    await rm(place.opened, { force: true });
  }
});

/** Log in, agree, and return where the program is answered. */
async function agree(
  page: Page,
  address: string,
  name: string
): Promise<string> {
  await page.goto(address);
  await page.locator('#password_input').fill(TOKEN);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await expect(page.getByRole('heading')).toHaveText('Give an agent access?');
  await page.getByLabel('Name', { exact: true }).fill(name);
  const answered = page.waitForRequest(request =>
    request.url().includes('code=')
  );
  await page.getByRole('button', { name: 'Give access' }).click();
  return (await answered).url();
}

/** The labels of the tokens that the person has given. */
async function given(page: Page, url: string): Promise<string[]> {
  const listed = await page.request.get(`${url}/tokens`, {
    headers: { Authorization: `token ${TOKEN}` }
  });
  const { tokens } = (await listed.json()) as { tokens: { label: string }[] };
  return tokens.map(({ label }) => label);
}

for (const [name, command, ...args] of [
  ["Python's SDK", 'python', '-m', 'tests.mcp.signing_in'],
  [
    "TypeScript's SDK",
    'node',
    join(CLIENTS, 'typescript_sign_in.mjs'),
    'client'
  ],
  ["TypeScript's SDK 1", 'node', join(CLIENTS, 'typescript_sign_in.mjs'), 'sdk']
]) {
  test(`${name} signs in`, async ({ page, place, start }) => {
    const program = start(command, ...args, `${place.url}/mcp`);
    program.type(await agree(page, await program.line(), name));
    expect(await program.line()).toContain('"execute"');
    expect(await given(page, place.url)).toContain(name);
  });
}

/** The address with which a program opened its browser. */
async function opened({ opened }: IPlace, program: Process): Promise<string> {
  let address = '';
  await expect(async () => {
    address = await readFile(opened, 'utf-8');
  }, program.errors).toPass();
  return address;
}

test('the inspector signs in', async ({ page, place, start }) => {
  const program = start(
    join(PROGRAMS, 'mcp-inspector'),
    '--cli',
    `${place.url}/mcp`,
    ...['--transport', 'http', '--method', 'tools/list']
  );
  await agree(page, await opened(place, program), 'inspector');
  await expect.poll(() => program.output).toContain('"execute"');
  expect(await given(page, place.url)).toContain('inspector');
});

test('mcp-remote signs in', async ({ page, place, start }) => {
  const program = start(
    join(PROGRAMS, 'mcp-remote'),
    `${place.url}/mcp`,
    '--allow-http'
  );
  await agree(page, await opened(place, program), 'remote');
  const call = (method: string, more: object) =>
    program.type(JSON.stringify({ jsonrpc: '2.0', method, ...more }));
  call('initialize', {
    id: 1,
    params: {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'tester', version: '1' }
    }
  });
  await program.line();
  call('notifications/initialized', {});
  call('tools/list', { id: 2 });
  await expect.poll(() => program.output).toContain('"execute"');
  expect(await given(page, place.url)).toContain('remote');
});
