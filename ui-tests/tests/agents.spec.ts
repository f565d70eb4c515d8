/** Agents that people use, with a scripted model, in a notebook that is open in JupyterLab. */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from '@playwright/test';
import { OwnServer } from './ownserver';
import { Process, PROJECT } from './process';
import { openSales, TOKEN } from './sales';
import { correctPicture, scriptedModel, SEEN } from './scriptedmodel';

const PROGRAMS = join(PROJECT, 'tests/mcp/agents/node_modules/.bin');
const PAGE = join(PROJECT, 'docs/how-to/clients.md');

/** A client, as `connect` and the page about clients know it. */
interface IClient {
  name: string;
  title: string;
  /** What it calls itself. */
  agent: string;
  /** What tells it of the model, in its home. */
  file?: string;
  content?: (model: string) => string;
  env?: (model: string) => NodeJS.ProcessEnv;
  /** How it is started so that it does not ask itself, by what the page says. */
  start: (once: string) => string;
}

const CLIENTS: IClient[] = [
  {
    name: 'claude-code',
    title: 'Claude Code',
    agent: 'claude-code',
    env: model => ({
      ANTHROPIC_API_KEY: 'none',
      ANTHROPIC_BASE_URL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // Its model gets the tools with the first request.
      MCP_CONNECTION_NONBLOCKING: 'false'
    }),
    start: once => `${once} -p 'Draw the sales'`
  },
  {
    name: 'codex',
    title: 'Codex',
    agent: 'codex-mcp-client',
    file: '.codex/config.toml',
    content: model => `
      model = "scripted"
      model_provider = "scripted"
      [model_providers.scripted]
      name = "scripted"
      base_url = "${model}/v1"
      wire_api = "responses"`,
    start: once => `${once} exec --skip-git-repo-check 'Draw the sales'`
  },
  {
    name: 'gemini',
    title: 'Gemini CLI',
    agent: 'gemini-cli-mcp-client',
    file: '.gemini/settings.json',
    content: () =>
      JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' } }
      }),
    env: model => ({
      GEMINI_API_KEY: 'none',
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      GOOGLE_GEMINI_BASE_URL: model
    }),
    start: once =>
      `sed -i 's/"jupyter": {/&${once},/' .gemini/settings.json && exec gemini -m gemini-2.5-flash -p 'Draw the sales'`
  }
];

for (const client of CLIENTS) {
  test(`${client.title} works in the open notebook, and heeds why it was rejected`, async ({
    page
  }) => {
    const server = await OwnServer.prepare({ AGENT_EXEC_UI_TOKEN: TOKEN });
    const home = join(server.folder, 'home');
    const opened = join(home, 'opened');
    await mkdir(join(home, 'bin'), { recursive: true });
    for (const browser of ['browser', 'xdg-open']) {
      await writeFile(
        join(home, 'bin', browser),
        `#!/bin/sh\nprintf %s "$1" > '${opened}.part'\nmv '${opened}.part' '${opened}'\n`
      );
      await chmod(join(home, 'bin', browser), 0o700);
    }
    await server.start();
    const { notebook, request } = await openSales(page, server, 'clients');
    await notebook.connected();

    const model = scriptedModel();
    const address = await model.line();
    const env: NodeJS.ProcessEnv = {
      ...process.env,
      ...client.env?.(address),
      BROWSER: join(home, 'bin', 'browser'),
      HOME: home,
      PATH: `${join(home, 'bin')}:${PROGRAMS}:${process.env.PATH}`
    };
    if (client.file && client.content) {
      await mkdir(dirname(join(home, client.file)));
      await writeFile(join(home, client.file), client.content(address));
    }
    const run = (line: string) =>
      new Process('sh', ['-c', `cd && ${line}`], env);
    const atTerminal = (line: string) =>
      run(`exec script -qec "stty cols 99 rows 30; ${line}" /dev/null`);

    let signing = atTerminal(
      `jupyter agent-exec connect ${client.name} --yes --url ${server.url}`
    );
    if (client.name === 'gemini') {
      expect(await signing.ended(), signing.output).toBe(0);
      const [, command, name] =
        /Then start gemini, and type: ([\w/ ]+)( \w+)/.exec(signing.output)!;
      signing = atTerminal('gemini');
      await expect.poll(() => signing.output).toContain('Type your message');
      signing.write(command);
      // Until it has loaded its commands, it takes them for questions.
      await expect.poll(() => signing.output).toContain('Authenticate with');
      signing.write(name);
      await expect.poll(() => signing.output).toContain(command + name);
      signing.write('\r');
      await expect.poll(() => signing.output).toContain('Do you want to');
      signing.write('\r');
    }
    await expect(async () => {
      await readFile(opened);
    }, signing.output).toPass();
    const consent = await page.context().newPage();
    await consent.goto(await readFile(opened, 'utf-8'));
    await expect(
      consent.getByRole('checkbox', { name: /^Work in .*sales\.ipynb/ })
    ).toBeChecked();
    const answered = consent.waitForRequest(/code=/);
    await consent.getByRole('button', { name: 'Give access' }).click();
    await answered;
    if (client.name === 'gemini') {
      await expect.poll(() => signing.output).toContain('Successfully');
      await signing.stop();
    } else {
      expect(await signing.ended(), signing.output).toBe(0);
    }
    await consent.close();

    const row = new RegExp(`\\n\\| ${client.title} \\|.*\`([^\`]+)\` \\|\\n`);
    const [, once] = row.exec(await readFile(PAGE, 'utf-8'))!;
    const agent = run(`${client.start(once)} < /dev/null`);
    await correctPicture(page);
    await agent.ended();
    expect(agent.output, agent.errors).toContain(SEEN);

    const get = async (route: string) =>
      (await request.get(`${server.url}/api/agent-exec/${route}`)).json();
    const { sessions } = await get('sessions');
    expect(sessions).toMatchObject([
      { agent: { name: client.agent }, target: { path: 'sales.ipynb' } }
    ]);
    const { executions } = await get(`sessions/${sessions[0].id}/executions`);
    expect(executions).toMatchObject([
      { status: 'rejected' },
      { status: 'ok', revises: executions[0].id }
    ]);
    await model.stop();
    await request.dispose();
    await server.remove();
  });
}
