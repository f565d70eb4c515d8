/** Jupyter AI's chat in JupyterLab: its agents work in the open notebook. */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from '@playwright/test';
import type { APIRequestContext, Page } from '@playwright/test';
import { Question } from './approval';
import { OwnServer } from './ownserver';
import { keep } from './pictures';
import { Process, PROJECT } from './process';
import { openSales, TOKEN } from './sales';
import { correctPicture, scriptedModel, SEEN } from './scriptedmodel';

const BIN = join(PROJECT, '.make/jupyter-ai/bin');
const DOCUMENTS_BIN = join(PROJECT, '.make/server-documents/bin');
const AGENT = join(PROJECT, 'tests/chat/acp_agent.py');
const PROGRAMS = join(PROJECT, 'tests/mcp/agents/node_modules/.bin');
const PAGE = join(PROJECT, 'docs/how-to/jupyter-ai.md');

/** What the page about the chat says a file is to hold. */
async function told(language: string): Promise<string> {
  const blocks = new RegExp(`\n\`\`\`${language}\n([^]*?)\`\`\`\n`);
  return blocks.exec(await readFile(PAGE, 'utf-8'))![1];
}

/** An agent that people use in the chat. */
interface IChatAgent {
  title: string;
  /** What the record calls it. */
  name: string;
  /** The program that the chat starts. */
  program: string;
  /** Its class, if Jupyter AI has none. */
  persona?: () => Promise<string>;
  /** What its home has besides. */
  files?: Record<string, string>;
  env: (model: string) => Record<string, string>;
  /** The answer after which it does not ask again in this session. */
  always: RegExp;
  /** How often it asks, if that is the answer. */
  asks: number;
  /** What leaves out its question: a file in its home, a block on the page. */
  settled: { file: string; language: string };
}

const AGENTS: IChatAgent[] = [
  {
    title: 'Claude Code',
    name: 'ClaudeAcpPersona',
    program: 'claude-agent-acp',
    env: model => ({
      ANTHROPIC_API_KEY: 'none',
      ANTHROPIC_BASE_URL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      IS_SANDBOX: '', // root may not switch off all its questions
      // Its model gets the tools with the first request.
      MCP_CONNECTION_NONBLOCKING: 'false'
    }),
    always: /^Always Allow/,
    asks: 2, // once for each tool
    settled: { file: '.claude/settings.json', language: 'json' }
  },
  {
    title: 'Gemini CLI',
    name: 'GeminiPersona',
    program: 'gemini',
    persona: () => told('python'),
    files: {
      '.gemini/settings.json': JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' } }
      })
    },
    env: model => ({
      GEMINI_API_KEY: 'none',
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      GEMINI_MODEL: 'gemini-2.5-flash',
      GOOGLE_GEMINI_BASE_URL: model
    }),
    always: /^Allow all server tools/,
    asks: 1,
    settled: { file: '.gemini/policies/jupyter.toml', language: 'toml' }
  }
];

/** A server with the chat, in an empty folder. */
function prepare(bin = BIN): Promise<OwnServer> {
  return OwnServer.prepare(
    {
      AGENT_EXEC_UI_COLLABORATION: bin === BIN ? 'off' : 'documents',
      AGENT_EXEC_UI_TOKEN: TOKEN,
      PATH: `${bin}:${process.env.PATH}`
    },
    join(bin, 'jupyter-lab')
  );
}

/** Start the server, with one more persona or none, and open the chat beside the notebook. */
async function openChat(
  page: Page,
  server: OwnServer,
  persona?: string,
  environ: Record<string, string> = {}
): Promise<APIRequestContext> {
  const data = { JUPYTER_DATA_DIR: join(server.folder, 'data') };
  if (persona) {
    const personas = join(server.folder, 'served', '.jupyter', 'personas');
    await mkdir(personas, { recursive: true });
    await writeFile(join(personas, 'a_persona.py'), persona);
  }
  await server.start({ ...data, ...environ });
  const connecting = new Process(
    join(BIN, 'jupyter'),
    ['agent-exec', 'connect', 'jupyter-ai', '--yes', '--url', server.url],
    { ...process.env, ...data, PATH: `${BIN}:${process.env.PATH}` }
  );
  expect(await connecting.ended(), connecting.errors).toBe(0);
  const { request } = await openSales(page, server, 'chat');
  await page.evaluate(async () => {
    await window.jupyterapp.commands.execute('notebook:run-all-cells');
    await window.jupyterapp.commands.execute('jupyterlab-chat:createAndOpen', {
      name: 'work',
      inSidePanel: true
    });
  });
  return request;
}

/** Say something in the chat. */
async function say(page: Page, text: string): Promise<void> {
  const message = page.getByPlaceholder('Type a chat message');
  await message.fill(text);
  await message.press('Enter');
}

/** What was said last in the chat. */
const last = (page: Page) => page.locator('.jp-chat-rendered-message').last();

/** The only session, and its executions. */
async function recorded(server: OwnServer, request: APIRequestContext) {
  const get = async (route: string) =>
    (await request.get(`${server.url}/api/agent-exec/${route}`)).json();
  const { sessions } = await get('sessions');
  expect(sessions).toHaveLength(1);
  const [session] = sessions;
  const { executions } = await get(`sessions/${session.id}/executions`);
  return { session, executions };
}

for (const bin of [BIN, DOCUMENTS_BIN]) {
  const where =
    bin === BIN ? 'open notebook' : 'notebook that the server keeps';
  test(`an agent in the chat works in the ${where} once the card is approved`, async ({
    page
  }) => {
    const server = await prepare(bin);
    const command = JSON.stringify([join(BIN, 'python'), AGENT]);
    const persona = (await told('python'))
      .replace('["gemini", "--acp"]', command)
      .replace('class Gemini', 'class Running');
    const request = await openChat(page, server, persona);
    await say(page, 'sales * 7');
    const question = Question.in(page.locator('.jp-NotebookPanel:visible'));
    await expect
      .poll(async () => (await question.lines()).at(-1))
      .toBe('sales * 7');
    await question.tried();
    await expect(question.button('Approve')).not.toHaveAttribute(
      'aria-disabled',
      'true'
    );
    if (bin === BIN) {
      await keep(page, 'chat');
    }
    await question.answer('Approve');
    const cell = page.locator('.jp-NotebookPanel:visible .jp-Cell').last();
    await expect(cell.locator('.jp-OutputArea-output')).toHaveText('42');
    await expect(cell).toContainText('“RunningPersona”');
    await expect(last(page)).toContainText('42');
    expect((await recorded(server, request)).session).toMatchObject({
      agent: { name: 'RunningPersona' },
      client_id: expect.stringMatching(/^chat /),
      target: { path: 'sales.ipynb' }
    });
    await request.dispose();
    await server.remove();
  });
}

for (const agent of AGENTS) {
  for (const asks of [agent.asks, 0]) {
    const own = asks ? 'with' : 'without';
    test(`${agent.title} in the chat, ${own} its own question, heeds why the card was rejected`, async ({
      page
    }) => {
      const server = await prepare();
      const home = join(server.folder, 'home');
      const files = { ...agent.files };
      if (!asks) {
        files[agent.settled.file] = await told(agent.settled.language);
      }
      for (const [name, content] of Object.entries(files)) {
        await mkdir(dirname(join(home, name)), { recursive: true });
        await writeFile(join(home, name), content);
      }
      // The chat has a persona for each program that it finds.
      const bin = join(home, 'bin');
      await mkdir(bin, { recursive: true });
      await symlink(join(PROGRAMS, agent.program), join(bin, agent.program));
      const model = scriptedModel();
      const request = await openChat(page, server, await agent.persona?.(), {
        HOME: home,
        PATH: `${bin}:${BIN}:${process.env.PATH}`,
        ...agent.env(await model.line())
      });
      await say(page, 'Draw the sales');
      const always = page.getByRole('button', { name: agent.always });
      for (let n = 0; n < asks; n++) {
        await always.click();
        await expect(always).toHaveCount(0);
      }
      await correctPicture(page);
      await expect(last(page)).toContainText(SEEN);
      await expect(always).toHaveCount(0);

      const { session, executions } = await recorded(server, request);
      expect(session).toMatchObject({
        agent: { name: agent.name },
        client_id: expect.stringMatching(/^chat /),
        target: { path: 'sales.ipynb' }
      });
      expect(executions).toMatchObject([
        { status: 'rejected' },
        { status: 'ok', revises: executions[0].id }
      ]);
      await model.stop();
      await request.dispose();
      await server.remove();
    });
  }
}
