/** An agent in a notebook that a person has open in Jupyter Notebook. */
import { expect } from '@playwright/test';
import type { Page } from '@playwright/test';
import { AskingAgent, Question } from './approval';
import { errorsOfOurs, test } from './lab';
import { codeCell, Files, NotebookAgent, OpenNotebook } from './notebook';
import { Panel } from './panel';
import { Person } from './person';
import { ProposingAgent, ShownProposals } from './proposing';

/** What collaboration brings, and instead of what. */
const COLLABORATION = [
  '@jupyter/collaboration-extension',
  '@jupyter/docprovider-extension'
];

/**
 * Leave out of the page what would need a server with collaboration.
 *
 * Not by another answer of the server: the browser would not let such a page
 * open WebSockets.
 */
async function withoutCollaboration(page: Page): Promise<void> {
  await page.addInitScript(disabledExtensions => {
    new MutationObserver((_, observer) => {
      const config = document.getElementById('jupyter-config-data');
      if (config) {
        observer.disconnect();
        const options = JSON.parse(config.textContent ?? '');
        config.textContent = JSON.stringify({ ...options, disabledExtensions });
      }
    }).observe(document, { childList: true, subtree: true });
  }, COLLABORATION);
}

test('in Jupyter Notebook an agent’s cell comes through the page, with badge and toolbar', async ({
  page,
  request,
  baseURL
}) => {
  // It has errors of its own: what JupyterLab's extensions ask for is not all there.
  const ours = errorsOfOurs(page);
  const files = new Files(request, baseURL!);
  const path = 'in-notebook-7.ipynb';
  await files.write(path, [codeCell('mine', 'x = 1')]);
  await withoutCollaboration(page);
  await page.goto(`${baseURL}/notebooks/${path}`);
  await new OpenNotebook(page, path).ready(request, baseURL!);
  await page.locator('.jp-Cell .cm-content').click();
  await page.keyboard.press('End');
  await page.keyboard.type('00  # not saved');
  const agent = await NotebookAgent.open(request, baseURL!, path);
  try {
    expect(await agent.run('print(6 * 7)')).toBe('tab');
    const badge = page.getByRole('group', { name: /^Agent “analyst/ });
    await expect(badge).toContainText('Done');
    await expect(page.getByText('42', { exact: true })).toBeVisible();
    await expect(page.getByText('x = 100  # not saved')).toBeVisible();
    const item = '.jp-Toolbar-item[data-jp-item-name="agent-exec:status"]';
    await expect(
      page.locator(item).getByRole('button', { name: /analyst/ })
    ).toBeVisible();
    await page.keyboard.press('Control+s');
    await expect
      .poll(() => files.cells(path))
      .toEqual([
        { source: 'x = 100  # not saved', text: '' },
        { source: 'print(6 * 7)', text: '42\n' }
      ]);
  } finally {
    await agent.close();
  }
  expect(ours).toEqual([]);
});

test('in Jupyter Notebook a person finds the panel, decides and reviews', async ({
  page,
  request,
  baseURL,
  server
}) => {
  const ours = errorsOfOurs(page);
  const path = 'decided-in-notebook-7.ipynb';
  await new Files(request, baseURL!).write(path, [codeCell('mine', 'x = 1')]);
  await withoutCollaboration(page);
  await page.goto(`${baseURL}/notebooks/${path}`);
  await new OpenNotebook(page, path).ready(request, baseURL!);
  await server.setPolicy({ notebook: 'always', scratch: 'none' });
  const { id } = await server.send<{ id: string }>('post', 'sessions', {
    agent: { name: 'analyst' },
    title: 'In Jupyter Notebook',
    target: { kind: 'notebook', path }
  });
  const agent = new AskingAgent(server, id);
  const first = await agent.ask('print("first", 6 * 7)');
  const person = new Person(page);
  await Question.in(person.cell(0)).answer('Approve');
  expect((await agent.read(first, 30)).status).toBe('ok');
  await expect(person.cell(1)).toContainText('first 42');
  await expect(Question.in(person.cell(0)).node).toBeHidden();

  // As any notebook there, the session's has a tab of the browser.
  const opening = page.context().waitForEvent('page');
  await person
    .badge(1)
    .getByRole('button', { name: 'Open Agent Session' })
    .click();
  const panel = new Panel(await opening);
  await expect(panel.cell(1)).toContainText('first 42');
  const second = await agent.ask('print("second")');
  await Question.in(person.cell(1)).answer('Approve');
  expect((await agent.read(second, 30)).status).toBe('ok');
  await expect(Question.in(person.cell(1)).node).toBeHidden();
  await panel.choose(2, 'Flag');
  await expect(person.badge(2)).toContainText('Flagged by');
  await agent.close();

  const editor = await ProposingAgent.open(request, baseURL!, path);
  await editor.propose({ op: 'replace', cell_id: 'mine', source: 'x = 2' });
  const proposed = new ShownProposals(page);
  await proposed.keep(proposed.edit('Change this cell'));
  await expect(proposed.bar).toContainText('1 kept');
  await expect(
    person.cell(0).locator('.jp-Cell-inputWrapper .cm-content')
  ).toHaveText('x = 2');
  await proposed.all('Undo');
  await expect(
    person.cell(0).locator('.jp-Cell-inputWrapper .cm-content')
  ).toHaveText('x = 1');
  await editor.close();
  expect(ours).toEqual([]);
});
