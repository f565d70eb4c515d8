/** A person takes back what an agent's code did in their kernel. */
import { expect } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator, Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { codeCell } from './notebook';
import { openedDialog } from './panel';
import { ProposingAgent, ShownProposals } from './proposing';
import { outputs, runAsPerson, shown, test } from './trust';

/** Ask to undo what ran in a cell; return the dialog. */
async function askToUndo(page: Page, cell: Locator): Promise<Locator> {
  await cell.getByRole('button', { name: 'More actions' }).click();
  await page
    .getByRole('menuitem', { name: 'Undo What the Agent Ran…' })
    .click();
  return openedDialog(page);
}

test('variables are as they were once a person has undone what ran', async ({
  desk,
  page
}) => {
  const notebook = await desk.open([
    codeCell('mine', 'df = "mine"'),
    codeCell('look', 'print(df)')
  ]);
  await runAsPerson(notebook, 0);
  const agent = await desk.attach();
  await desk.run(agent, 'df');
  const off = await askToUndo(page, shown(page, 2));
  await expect(off).toContainText('Undo is off for this kernel.');
  await off.getByRole('button', { name: 'Turn on' }).click();
  await expect(off).toBeHidden();

  await desk.run(agent, 'df = "the agent’s"');
  const cell = shown(page, 3);
  const dialog = await askToUndo(page, cell);
  await expect(dialog).toContainText('Files and databases on disk');
  await expectAccessible(page);
  await page.screenshot({ path: test.info().outputPath('undo.png') });
  await dialog.getByRole('button', { name: 'Undo' }).click();
  await expect(cell.locator('.jp-AgentExecBadge')).toContainText('Undone');
  await page.screenshot({ path: test.info().outputPath('undone.png') });
  await runAsPerson(notebook, 1);
  await expect(outputs(page, 1)).toHaveText('mine');

  const over = await askToUndo(page, cell);
  await expect(over).toContainText('This cannot be undone');
});

test('the user of a kernel that dies reads which variables are back', async ({
  desk,
  page
}) => {
  const notebook = await desk.open([
    codeCell('mine', 'df = "mine"'),
    codeCell('look', 'print(df)'),
    codeCell('death', 'import os; os.kill(os.getpid(), 9)')
  ]);
  const kernelId = () =>
    page.evaluate(() => {
      const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
      return panel.sessionContext.session?.kernel?.id;
    });
  await runAsPerson(notebook, 0);
  const agent = await desk.attach();
  await desk.run(agent, 'df');
  const off = await askToUndo(page, shown(page, 3));
  await off.getByRole('button', { name: 'Turn on' }).click();
  await expect(off).toBeHidden();
  await desk.run(agent, 'df = "the agent’s"');
  const before = await kernelId();

  const death = runAsPerson(notebook, 2);
  const restarts = await openedDialog(page);
  await expect(restarts).toContainText('Kernel Restarting');
  await restarts.getByRole('button', { name: 'Ok' }).click();
  const told = page.getByRole('alert').filter({ hasText: 'The kernel of' });
  await death;
  await expect(told).toContainText(
    /The kernel of .* died; its variables are those of .*, before cell \[3\]\./
  );
  await expectAccessible(page);
  await page.screenshot({ path: test.info().outputPath('rescued.png') });
  await runAsPerson(notebook, 1);
  await expect(outputs(page, 1)).toHaveText('mine');
  expect(await kernelId()).toBe(before);
});

test('all that an agent changed since a person’s last edit is undone, and made again', async ({
  baseURL,
  desk,
  page,
  request
}) => {
  const notebook = await desk.open([
    codeCell('mine', 'df = 1'),
    codeCell('typed', '')
  ]);
  await runAsPerson(notebook, 0);
  const agent = await ProposingAgent.open(request, baseURL!, desk.path);
  await agent.ask('df = "before"');
  const badges = page.locator('.jp-AgentExecBadge');
  await expect(badges.filter({ hasText: 'Done' })).toHaveCount(1);
  await shown(page, 1).locator('.cm-content').click();
  await page.keyboard.type('own = 1');

  await agent.ask('df = "since"');
  await expect(badges.filter({ hasText: 'Done' })).toHaveCount(2);
  await agent.propose({ op: 'replace', cell_id: 'mine', source: 'df = 3' });
  const proposals = new ShownProposals(page);
  await proposals.keep(proposals.edit('Change this cell'));
  await expect(proposals.bar).toContainText('1 kept');
  const sources = async () =>
    (await notebook.cells()).map(({ source }) => source);
  const before = ['df = 1', 'own = 1', 'df = "before"'];
  const after = ['df = 3', 'own = 1', 'df = "before"', 'df = "since"'];
  expect(await sources()).toEqual(after);

  await shown(page, 3).getByRole('button', { name: 'More actions' }).click();
  await page.screenshot({ path: test.info().outputPath('menu.png') });
  await page
    .getByRole('menuitem', { name: 'Undo the Agent’s Changes' })
    .click();
  const told = page.getByRole('alert').filter({ hasText: 'Undid 2 changes.' });
  await expect(told).toBeVisible();
  await expect.poll(sources).toEqual(before);
  await expect(proposals.bar).toContainText('1 undone');
  const again = proposals.bar.getByRole('button', { name: 'Undo' });
  await expect(again).toBeHidden();
  await told.hover();
  await page.screenshot({ path: test.info().outputPath('undone.png') });
  await told.getByRole('button', { name: 'Make again' }).click();
  await expect.poll(sources).toEqual(after);
  await expect(proposals.bar).toContainText('1 kept');
  await expect(again).toBeVisible();

  await page.evaluate(() =>
    window.jupyterapp.commands.execute('agent-exec:undo-round')
  );
  await expect.poll(sources).toEqual(before);
  await shown(page, 1).locator('.cm-content').click();
  await page.keyboard.press('Control+Z');
  await expect.poll(sources).toEqual(['df = 1', '', 'df = "before"']);
  await expectAccessible(page);
  await agent.close();
});

test('what was changed in the notebook since is undone with it, once a person ticks that', async ({
  baseURL,
  desk,
  page,
  request
}) => {
  const notebook = await desk.open([codeCell('mine', 'df = 1')]);
  await runAsPerson(notebook, 0);
  const agent = await ProposingAgent.open(request, baseURL!, desk.path);
  await agent.ask('df');
  const first = shown(page, 1);
  await expect(first.locator('.jp-AgentExecBadge')).toContainText('Done');
  const off = await askToUndo(page, first);
  await off.getByRole('button', { name: 'Turn on' }).click();
  await expect(off).toBeHidden();

  await agent.ask('df = 2');
  const cell = shown(page, 2);
  await expect(cell.locator('.jp-AgentExecBadge')).toContainText('Done');
  await agent.propose({ op: 'replace', cell_id: 'mine', source: 'df = 3' });
  const proposals = new ShownProposals(page);
  await proposals.keep(proposals.edit('Change this cell'));
  await expect(proposals.bar).toContainText('1 kept');

  const dialog = await askToUndo(page, cell);
  const tick = dialog.getByRole('checkbox', {
    name: 'Also undo what the agent has changed in the notebook since'
  });
  await expect(tick).not.toBeChecked();
  await tick.check();
  await expectAccessible(page);
  await page.screenshot({ path: test.info().outputPath('round.png') });
  await dialog.getByRole('button', { name: 'Undo' }).click();
  await expect
    .poll(async () => (await notebook.cells()).map(({ source }) => source))
    .toEqual(['df = 1', 'df']);
  await expect
    .poll(async () => Object.values(await agent.statuses()))
    .toEqual(['undone']);
  await agent.close();
});
