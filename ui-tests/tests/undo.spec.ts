/** A person takes back what an agent's code did in their kernel. */
import { expect } from '@jupyterlab/galata';
import type { Locator, Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { codeCell } from './notebook';
import { openedDialog } from './panel';
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
