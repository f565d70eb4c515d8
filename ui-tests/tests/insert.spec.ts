/** What an agent ran, taken over into a person's own notebook. */
import { expect } from '@jupyterlab/galata';
import { mergeTests } from '@playwright/test';
import { codeCell } from './notebook';
import { test as panelTest } from './panel';
import {
  canary,
  python,
  ran,
  runAsPerson,
  shown,
  test as trustTest,
  trusted
} from './trust';

const test = mergeTests(panelTest, trustTest);

/** A person's output that runs only where it is trusted. */
const MINE = `from IPython.display import HTML, display
x = 41
display(HTML(${python(`<b id="drawn">mine</b><script>${canary('mine')}</script>`)}))`;

/** An agent's output: a table, and a program. */
const THEIRS = `from IPython.display import HTML, display
display(HTML(${python(
  `<table><tr><td>told</td></tr></table><script>${canary('theirs')}</script>`
)}))`;

test('cells go where the cursor is, and are undone in one step', async ({
  page,
  panel,
  newAgent,
  desk
}) => {
  const agent = await newAgent('To take over');
  await agent.run('print("one")');
  await agent.run(THEIRS);
  let notebook = await desk.open([
    codeCell('first', MINE),
    codeCell('last', '# the end')
  ]);
  await runAsPerson(notebook, 0);
  await expect(page.locator('#drawn')).toBeVisible();
  await panel.open();
  await panel.show('To take over');
  const sources = async () =>
    (await notebook.cells()).map(({ source }) => source);
  const before = await sources();
  // One cell, below the one that is active.
  await panel.choose(1, 'Insert Into My Notebook');
  await expect.poll(sources).toEqual([MINE, 'print("one")', '# the end']);
  await expect(shown(page, 1)).toHaveClass(/jp-mod-active/);
  expect((await notebook.cells())[1].text).toBe('one\n');
  await shown(page, 1).locator('.jp-InputArea-prompt').click();
  await page.keyboard.press('z');
  await expect.poll(sources).toEqual(before);
  await shown(page, 0).locator('.jp-InputArea-prompt').click();
  for (const seq of [1, 2]) {
    await panel.show('To take over');
    await panel.choose(seq, 'Insert Into My Notebook');
    await shown(page, 0).getByText('x = 41').waitFor();
  }
  const all = [MINE, 'print("one")', THEIRS, '# the end'];
  await expect.poll(sources).toEqual(all);
  await notebook.save();
  notebook = await desk.reopen();
  await expect(shown(page, 2)).toContainText('told');
  // The person's own output is still trusted, and the agent's does nothing.
  await expect.poll(() => ran(page)).toEqual(['mine']);
  expect(await trusted(notebook)).toEqual([true, true, true, true]);
});

test('without a notebook a message says what is missing; a source goes to the clipboard', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('To copy');
  await agent.run('print("copied")');
  await panel.open();
  await panel.show('To copy');
  await panel.choose(1, 'Insert Into My Notebook');
  await expect(page.getByText('No notebook is open.').first()).toBeVisible();
  // At once: what has to be fetched first may come too late to be copied.
  await page.route('**/api/agent-exec/executions/*', route => route.abort());
  await panel.choose(1, 'Copy Source');
  const search = panel.region.getByRole('textbox', {
    name: 'Search all'
  });
  await search.click();
  await page.keyboard.press('Control+v');
  await expect(search).toHaveValue('print("copied")');
  await page.unroute('**/api/agent-exec/executions/*');
});

test('cells that a person has deleted come back from the session', async ({
  page,
  panel,
  desk
}) => {
  const notebook = await desk.open([codeCell('mine', '1')]);
  const agent = await desk.attach();
  const theirs = ['print("one")', 'print("two")', 'print("three")'];
  for (const source of theirs) {
    await desk.run(agent, source);
  }
  await shown(page, 2).locator('.jp-InputArea-prompt').click();
  await page.keyboard.press('d');
  await page.keyboard.press('d');
  const sources = async () =>
    (await notebook.cells()).map(({ source }) => source);
  await expect.poll(sources).toEqual(['1', theirs[0], theirs[2]]);
  const bring = async () => {
    await shown(page, 1)
      .getByRole('button', { name: 'Open Agent Session' })
      .click();
    await panel.document.waitFor();
    await panel.tool('More actions').click();
    await page.getByRole('menuitem', { name: 'Insert Missing Cells' }).click();
  };
  await bring();
  await page.getByText('1 cell inserted').first().waitFor();
  await expect.poll(sources).toEqual(['1', ...theirs]);
  await expect(shown(page, 2)).toContainText('two');
  await bring();
  await page.getByText('No cell is missing.').first().waitFor();
  expect(await sources()).toEqual(['1', ...theirs]);
});
