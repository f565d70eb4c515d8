/** An agent in a notebook that jupyter-server-documents keeps on the server. */
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { AskingAgent, Question, Server } from './approval';
import { Files, NotebookAgent, OpenNotebook } from './notebook';
import { OwnServer } from './ownserver';
import { Person } from './person';
import { PROJECT } from './process';
import { openSales, TOKEN } from './sales';

const BIN = join(PROJECT, '.make/server-documents/bin');

test('a person and an agent work in a notebook that the server keeps', async ({
  page
}) => {
  const server = await OwnServer.prepare(
    {
      AGENT_EXEC_UI_COLLABORATION: 'documents',
      AGENT_EXEC_UI_TOKEN: TOKEN,
      PATH: `${BIN}:${process.env.PATH}`
    },
    join(BIN, 'jupyter-lab')
  );
  await server.start();
  const { notebook, request } = await openSales(page, server, 'documents');
  const routes = new Server(request, server.url);
  await routes.setPolicy({ notebook: 'none' });
  const agent = await NotebookAgent.open(request, server.url, 'sales.ipynb');
  const person = new Person(page);
  const files = new Files(request, server.url);
  const command = (name: string) =>
    page.evaluate(name => window.jupyterapp.commands.execute(name), name);
  const outputs = (index: number) =>
    person.cell(index).locator('.jp-OutputArea-output');
  const sources = async (from: OpenNotebook | Files) =>
    (from instanceof Files
      ? await from.cells('sales.ipynb')
      : await from.cells()
    ).map(({ source }) => source);

  // The person's own cells are run by the server, too.
  await command('notebook:run-cell');
  await expect(person.prompt(0)).toHaveText('[1]:');
  const LINES = 'for n in range(3):\n    print("line", n)\nsales * 7';
  expect(await agent.run(LINES)).toBe('collaboration');
  await expect(outputs(1)).toHaveText(['line 0\nline 1\nline 2', '42']);
  await expect(person.prompt(1)).toHaveText('[2]:');
  await expect(person.badge(1)).toContainText('analyst');
  await expect.poll(() => sources(files)).toEqual(['sales = 6', LINES]);

  // What the person undoes is not the agent's.
  await person.cell(0).locator('.cm-content').click();
  await page.keyboard.press('End');
  await page.keyboard.insertText('0');
  expect(await agent.run('print("kept")')).toBe('collaboration');
  await person.cell(0).locator('.cm-content').click();
  await page.keyboard.press('Control+z');
  await expect.poll(async () => (await sources(notebook))[0]).toBe('sales = 6');
  await page.keyboard.press('Escape');
  for (let undone = 0; undone < 3; undone++) {
    await page.keyboard.press('z');
  }
  const all = ['sales = 6', LINES, 'print("kept")'];
  await expect.poll(() => sources(notebook)).toEqual(all);

  // The agent runs a cell again whose outputs the server has written for the person.
  await command('notebook:run-all-cells');
  await expect(person.prompt(2)).toHaveText('[6]:');
  await expect(outputs(2)).toHaveText('kept');
  const { id } = (await notebook.cells())[1];
  const again = await agent.execute({
    source: 'print("again")\nsales',
    placement: { cell: id },
    wait: 60
  });
  expect(await agent.via(again.id)).toBe('collaboration');
  await expect(outputs(1)).toHaveText(['again', '6']);
  all[1] = 'print("again")\nsales';

  // What it proposes is no cell before it is approved.
  await routes.setPolicy({ notebook: 'always' });
  const { id: session } = await routes.send<{ id: string }>(
    'post',
    'sessions',
    {
      agent: { name: 'asker' },
      target: { kind: 'notebook', path: 'sales.ipynb' }
    }
  );
  const asker = new AskingAgent(routes, session);
  const asked = await asker.ask('print("asked")');
  const question = Question.in(page.locator('.jp-NotebookPanel:visible'));
  await expect(question.node).toBeVisible();
  expect(await sources(notebook)).toEqual(all);
  await question.answer('Approve');
  expect((await asker.read(asked, 30)).text).toContain('asked');
  await expect(question.node).toBeHidden();
  await expect(outputs(3)).toHaveText('asked');
  all.push('print("asked")');

  // Without a page the room saves what the agent does.
  await routes.setPolicy({ notebook: 'none' });
  await command('application:close');
  await expect(page.locator('.jp-NotebookPanel')).toHaveCount(0);
  expect(await agent.run('print("alone")')).toBe('collaboration');
  all.push('print("alone")');
  await expect.poll(() => sources(files)).toEqual(all);
  const opened = await OpenNotebook.open(page, 'sales.ipynb');
  await expect.poll(() => sources(opened)).toEqual(all);
  await expect(outputs(4)).toHaveText('alone');
  await request.dispose();
  await server.remove();
});
