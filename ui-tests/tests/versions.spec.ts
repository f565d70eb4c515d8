/**
 * The main way of a person who has agents: it has to be there in every version
 * of JupyterLab that is supported (`make test-versions`).
 */
import { expect } from '@playwright/test';
import { AskingAgent, Question } from './approval';
import { errorsOfOurs, openLab, test } from './lab';
import { codeCell, Files, NotebookAgent, OpenNotebook } from './notebook';
import { Person } from './person';

/** Shows a picture of one pixel. */
const PICTURE =
  'from base64 import b64decode\nfrom IPython.display import Image, display\n' +
  'display(Image(b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAA' +
  'DUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")))';

test('the panel lists and finds, and a document streams and shows images', async ({
  baseURL,
  newAgent,
  page,
  workspace
}) => {
  const errors = errorsOfOurs(page);
  const panel = await openLab(page, baseURL!, workspace);
  await panel.open();
  const agent = await newAgent(`Of any version, ${workspace}`);
  await panel.show(workspace);
  const running = await agent.begin(
    'import time\nfor n in range(600):\n    print("round", n, flush=True)\n    time.sleep(0.1)'
  );
  await expect(panel.cell(1)).toContainText('round 3');
  const status = page.getByRole('button', { name: /at work/ });
  await expect(status).toBeVisible();
  await panel
    .cell(1)
    .getByRole('button', { name: /^Stop “analyst”/ })
    .click();
  await expect.poll(() => agent.status(running.id)).toBe('interrupted');
  await expect(status).toBeHidden();
  // The message that the kernel is free covers the sections, and stays while
  // the mouse is over it.
  await page.mouse.move(0, 0);

  await agent.run(PICTURE);
  await expect(panel.cell(2).locator('img')).toBeVisible();

  await agent.run('print("a num" + "bat")');
  await panel.region
    .getByRole('textbox', { name: 'Search all' })
    .fill('numbat');
  await panel.region
    .getByRole('listbox', { name: 'Search results' })
    .getByRole('option')
    .first()
    .click();
  await expect(panel.cell(3)).toContainText('a numbat');

  // An open session is among what runs, and can be closed.
  await page.getByRole('tab', { name: 'Running Terminals' }).click();
  const item = page
    .locator('.jp-RunningSessions-item')
    .filter({ hasText: `“Of any version, ${workspace}` });
  await item.hover();
  await item.getByTitle('Close').click();
  await expect(item).toHaveCount(0);
  await expect(panel.about).toContainText('Closed by you');
  expect(errors).toEqual([]);
});

test('a person decides in the notebook, to which the panel leads', async ({
  baseURL,
  page,
  request,
  server,
  workspace
}) => {
  const errors = errorsOfOurs(page);
  const path = `${workspace}.ipynb`;
  await new Files(request, baseURL!).write(path, [codeCell('mine', 'x = 1')]);
  const panel = await openLab(page, baseURL!, workspace, path);
  const notebook = new OpenNotebook(page, path);
  await notebook.ready(request, baseURL!);
  await server.setPolicy({ notebook: 'always', scratch: 'always' });
  const { id } = await server.send<{ id: string }>('post', 'sessions', {
    agent: { name: 'analyst' },
    title: 'Asks in any version',
    target: { kind: 'notebook', path }
  });
  const agent = new AskingAgent(server, id);
  const first = await agent.ask('print("first", 6 * 7)');
  await page
    .getByRole('button', { name: 'Agent “analyst”: Needs approval' })
    .click();
  const person = new Person(page);
  const question = Question.in(person.cell(0));
  await question.answer('Approve');
  expect((await agent.read(first, 30)).status).toBe('ok');
  await notebook.last('first 42\n');
  await expect(question.node).toBeHidden();
  await expect(person.badge(1)).toContainText('Done');

  const second = await agent.ask('print("second")');
  await panel.open();
  await panel.show('Asks in any version');
  await panel.cell(2).getByRole('button', { name: 'Go to the cell' }).click();
  await Question.in(person.cell(1)).answer('Approve');
  expect((await agent.read(second, 30)).status).toBe('ok');
  await notebook.last('second\n');
  await expect(Question.in(person.cell(1)).node).toBeHidden();

  await panel.show('Asks in any version');
  await panel.choose(2, 'Mark Reviewed');
  await expect(panel.cell(2)).toContainText('Reviewed by');
  await OpenNotebook.open(page, path);
  await expect(person.badge(2)).toContainText('Reviewed by');
  await agent.close();
  expect(errors).toEqual([]);
});

test('a session opens as a notebook, and its cells go into one’s own', async ({
  baseURL,
  newAgent,
  page,
  request,
  workspace
}) => {
  const errors = errorsOfOurs(page);
  const path = `${workspace}.ipynb`;
  await new Files(request, baseURL!).write(path, [codeCell('mine', 'x = 1')]);
  const panel = await openLab(page, baseURL!, workspace, path);
  const notebook = new OpenNotebook(page, path);
  await notebook.ready(request, baseURL!);
  const agent = await newAgent('Taken over');
  await agent.run('print("theirs")');
  await panel.open();
  await panel.show('Taken over');
  await panel.cell(1).getByRole('button', { name: 'More actions' }).click();
  await page
    .getByRole('menuitem', { name: 'Insert Into My Notebook', exact: true })
    .click();
  await expect
    .poll(() => notebook.cells())
    .toMatchObject([{ source: 'x = 1' }, { source: 'print("theirs")' }]);

  await panel.show('Taken over');
  await panel.tool('Open Agent Session as Notebook').click();
  await expect(
    page
      .getByRole('main')
      .getByRole('tab', { name: 'Agent session Taken over.ipynb' })
  ).toHaveCount(2);
  const shown = page.locator('.jp-NotebookPanel:visible');
  await expect(shown.locator('.jp-CodeCell')).toHaveCount(1);
  await expect(shown).toContainText('theirs');
  expect(errors).toEqual([]);
});

test('an agent works in a notebook with unsaved edits', async ({
  baseURL,
  page,
  request,
  workspace
}) => {
  const errors = errorsOfOurs(page);
  const path = `${workspace}.ipynb`;
  const files = new Files(request, baseURL!);
  await files.write(path, [codeCell('mine', 'x = 1')]);
  await openLab(page, baseURL!, workspace, path);
  const notebook = new OpenNotebook(page, path);
  await notebook.ready(request, baseURL!);
  await page.locator('.jp-Cell .cm-content').click();
  await page.keyboard.press('End');
  await page.keyboard.type('00');
  const agent = await NotebookAgent.open(request, baseURL!, path);
  expect(await agent.run('print(6 * 7)')).toBe('tab');
  await expect(new Person(page).badge(1)).toContainText('Done');
  await expect(
    page
      .locator('.jp-Toolbar-item[data-jp-item-name="agent-exec:status"]')
      .getByRole('button', { name: /analyst/ })
  ).toBeVisible();
  await notebook.save();
  expect(await files.cells(path)).toEqual([
    { source: 'x = 100', text: '' },
    { source: 'print(6 * 7)', text: '42\n' }
  ]);
  await agent.close();
  expect(errors).toEqual([]);
});
