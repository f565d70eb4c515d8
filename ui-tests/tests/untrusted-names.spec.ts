/** However agents call themselves and their things, it is only text. */
import { expect } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';
import { AskingAgent, Question } from './approval';
import type { IExecution, Server } from './approval';
import { payloadCode } from './attempt';
import type { Listener } from './listener';
import { codeCell } from './notebook';
import type { Panel } from './panel';
import { NAMES } from './payloads';
import { python, shown } from './trust';
import type { Watch } from './watch';
import { command, test, toCell } from './watched';

/** A picture. */
const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGP4z8AARwzEcQCukw/x0F8jngAAAABJRU5ErkJggg==';

/** A word by which the cells of what is called oddly are found. */
const WORD = 'numbat';

// There are many, and machines with few cores draw them slowly.
test.setTimeout(600_000);

/** An agent that is called oddly, with what it ran and what it asks for. */
interface INamed {
  what: string;
  session: string;
  ran: IExecution;
  asks: IExecution;
}

/** What an agent runs whose variables, files and source are called so. */
function namedSource(name: string): string {
  const text = python(name);
  return [
    `"${WORD}"; # ${name.replace(/[\r\n\u2028]/g, ' ')}`,
    'from IPython.display import display',
    `text = ${text}`,
    `odd = type(${text}, (dict,), {"__repr__": lambda self: ${text}})()`,
    `globals()[${text}] = 1`,
    `open(${text}.replace("/", "_")[:99], "w").close()`,
    `display({"image/png": "${PICTURE}", "text/plain": ${text}}, raw=True)`
  ].join('\n');
}

/** Open a session of an agent that is called so. */
async function newNamed(
  server: Server,
  name: string,
  target: object
): Promise<AskingAgent> {
  const { id } = await server.send<{ id: string }>('post', 'sessions', {
    agent: { name, version: name, model: name },
    title: name,
    target
  });
  return new AskingAgent(server, id);
}

/** Let an agent run, be flagged and be rejected, and leave it asking. */
async function work(
  server: Server,
  what: string,
  name: string,
  target: object
): Promise<INamed> {
  await server.setPolicy({ kernel: 'none' });
  const agent = await newNamed(server, name, target);
  const ran = await agent.ask(namedSource(name), { wait: 30 });
  expect(ran.status, ran.text).toBe('ok');
  const review = { verdict: 'flagged', comment: name };
  await server.send('put', `executions/${ran.id}/review`, review);
  await server.setPolicy({ kernel: 'always' });
  const { id } = await agent.ask(namedSource(name));
  await server.send('post', `executions/${id}/reject`, { reason: name });
  const asks = await agent.ask(namedSource(name));
  return { what, session: agent.sessionId, ran, asks };
}

/** The names, each with an address to which nothing must be sent. */
function namesWith({ address }: Listener): [string, string][] {
  return Object.entries(NAMES).map(([what, name]) => [
    what,
    payloadCode({ name: `name ${what}`, code: name }, address).slice(0, 200)
  ]);
}

/** Look at what an agent ran, and at what it asks for. */
async function lookAtCells(
  page: Page,
  panel: Panel,
  watch: Watch,
  { what, session, ran, asks }: INamed
): Promise<void> {
  const show = (execution_id: string) =>
    command(page, 'agent-exec:open-panel', {
      session_id: session,
      execution_id
    });
  watch.at(`name ${what} in the document`);
  await show(ran.id);
  const cell = panel.cell(1);
  await expect(cell).toBeFocused();
  await expect(cell.locator('.cm-content')).toBeVisible();
  await expect(cell.locator('.jp-AgentExecChanges')).toBeVisible();
  await watch.lookAtNames();
  watch.at(`name ${what} in what asks`);
  await show(asks.id);
  const question = Question.in(panel.cell(3));
  await question.tried();
  await watch.lookAtNames();
  await question.button('Reject…').click();
  await page.keyboard.press('Escape');
}

/** Look at what a search finds. */
async function lookAtHits(
  page: Page,
  panel: Panel,
  watch: Watch,
  names: number
): Promise<void> {
  watch.at('names in a search');
  await panel.region.getByRole('textbox', { name: 'Search all' }).fill(WORD);
  const hits = panel.region
    .getByRole('listbox', { name: 'Search results' })
    .getByRole('option');
  await expect(hits.first()).toBeVisible();
  await watch.lookAtNames();
  await panel.region.getByRole('textbox', { name: 'Search all' }).fill('');
  watch.at('names in the list of sessions');
  await expect(panel.sessions.first()).toBeVisible();
  await watch.lookAtNames();
}

test('what agents are called, and call things, is only text in the panel and a document', async ({
  desk,
  page,
  panel,
  server,
  watch,
  listener
}) => {
  await desk.open([codeCell('mine', 'x = 1')]);
  await panel.open();
  await watch.begin();
  const names = namesWith(listener);
  // Of a kernel that others use too, a cell tells what changed.
  const kernel = await server.send<{ id: string }>('post', '../kernels', {
    path: desk.path
  });
  const target = { kind: 'kernel', kernel_id: kernel.id };
  await server.setPolicy({ kernel: 'none' });
  const first = await newNamed(server, 'first', target);
  await first.ask('1', { wait: 30 }); // nothing is known before it
  for (const [what, name] of names) {
    const agent = await work(server, what, name, target);
    const { session } = agent;
    await lookAtCells(page, panel, watch, agent);
    await server.send('post', `sessions/${session}/close`, {});
  }
  await lookAtHits(page, panel, watch, names.length);
  expect(await watch.end()).toEqual([]);
});

test('what agents are called, and notebooks, is only text in a notebook', async ({
  desk,
  page,
  panel,
  server,
  watch,
  listener
}) => {
  const names = namesWith(listener);
  const file = `${names[1][1]}\u202e.ipynb`;
  await desk.open([codeCell('mine', 'x = 1')], file);
  await panel.open();
  await watch.begin();
  await server.setPolicy({ notebook: 'always' });
  const path = desk.path.replace('notebook.ipynb', file);
  for (const [index, [what, name]] of names.entries()) {
    watch.at(`name ${what} in a notebook`);
    const agent = await newNamed(server, name, { kind: 'notebook', path });
    const asked = await agent.ask(namedSource(name));
    await toCell(page, index);
    const question = Question.in(shown(page, index)); // below the last cell
    await question.tried();
    await watch.lookAtNames();
    await question.answer('Approve');
    await agent.read(asked, 30);
    await expect(question.button('Approve')).toBeHidden();
    await watch.lookAtNames();
    await agent.close();
  }
  expect(await watch.end()).toEqual([]);
});
