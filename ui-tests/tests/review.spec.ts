/** What a person thinks of agents' cells, and erases. */
import { expect } from '@jupyterlab/galata';
import type { Locator, Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { codeCell } from './notebook';
import { Panel, test as panelTest } from './panel';
import { shown, test as notebookTest } from './trust';

/** Choose what a badge's menu offers. */
async function choose(page: Page, cell: Locator, item: string | RegExp) {
  await cell.getByRole('button', { name: 'More actions' }).click();
  await page
    .locator('.jp-AgentExecMenu .lm-Menu-item', { hasText: item })
    .click();
}

panelTest(
  'a session is erased from the record on the server’s page',
  async ({ page, panel, newAgent }) => {
    const agent = await newAgent('Printed a password');
    await agent.run('print("hunter2")');
    await panel.open();
    await panel.show('Printed a password');
    await expect(panel.cell(1)).toContainText('hunter2');
    await agent.close();
    const opening = page.context().waitForEvent('page');
    await choose(page, panel.document.getByRole('toolbar'), 'Erase');
    const server = await opening;
    await server.getByRole('button', { name: 'Erase' }).click();
    await expect(server.getByRole('status')).toContainText('Erased.');
    await server.close();
    await page.evaluate(() => window.dispatchEvent(new Event('focus')));
    await expect(panel.cell(1)).not.toContainText('hunter2');
    await expect(panel.document).toContainText('Erased from the record');
  }
);

panelTest(
  'a review of a cell, and of all so far, is there for everybody, and stays',
  async ({ page, context, panel, newAgent }) => {
    const agent = await newAgent('Looked through');
    await agent.run('print(1)');
    await agent.run('print(2)');
    await panel.open();
    await panel.show('Looked through');
    const review = panel.cell(1);
    await expect(panel.session('Looked through')).toContainText('2 unreviewed');

    const other = await context.newPage();
    await other.goto(page.url());
    await other.waitForFunction(() => window.jupyterapp?.restored);
    await other.evaluate(async session_id => {
      const { commands, restored } = window.jupyterapp;
      await restored;
      await commands.execute('agent-exec:open-panel', { session_id });
    }, agent.sessionId);
    await page.bringToFront();
    const theirs = new Panel(other).cell(1);

    await panel.choose(1, 'Mark Reviewed');
    await expect(review).toContainText('Reviewed by');
    await expect(panel.session('Looked through')).toContainText('1 unreviewed');
    await expect(theirs).toContainText('Reviewed by');

    const more = review.getByRole('button', { name: 'More actions' });
    const field = page.getByRole('textbox', { name: 'Comment' });
    await panel.choose(1, 'Comment…');
    await field.fill('never mind');
    await page.keyboard.press('Escape');
    await expect(field).toHaveCount(0);
    await expect(more).toBeFocused();
    await panel.choose(1, 'Comment…');
    await expect(field).toHaveValue('');
    await field.fill('<b>As</b> I\nthought');
    await page.getByRole('button', { name: 'Save' }).click();
    await expect(review).toContainText('<b>As</b> I');
    await expect(more).toBeFocused();
    await expect(theirs).toContainText('<b>As</b> I');

    await panel.tool('More actions').click();
    await page.getByRole('menuitem', { name: 'Mark All Reviewed' }).click();
    await expect(panel.cell(2)).toContainText('Reviewed by');
    await expect(panel.session('Looked through')).not.toContainText(
      'unreviewed'
    );

    await page.reload();
    await expect(panel.cell(1)).toContainText('Reviewed by');
    await expect(panel.cell(1)).toContainText('thought');
    await expect(panel.cell(2)).toContainText('Reviewed by');
    await panel.choose(1, 'Mark Reviewed');
    await expect(theirs).toContainText('Commented on by');
    await other.close();
  }
);

notebookTest(
  'keys lead to what nobody has reviewed, and to what failed',
  async ({ desk, page }) => {
    await desk.open([codeCell('mine', '1')]);
    const agent = await desk.attach();
    const unreviewed = () => page.keyboard.press('Control+Alt+Shift+N');
    const active = (index: number) =>
      expect(shown(page, index)).toHaveClass(/jp-mod-active/);
    await page.keyboard.press('Control+Alt+Shift+E');
    await page.getByText('No agent has run a cell here.').first().waitFor();
    for (const source of ['print(1)', '1 / 0', 'print(3)']) {
      await desk.run(agent, source);
    }
    const cell = shown(page, 1);
    await choose(page, cell, 'Mark Reviewed');
    await expect(cell).toContainText('Reviewed by');
    await shown(page, 0).locator('.jp-InputArea-prompt').click();
    for (const next of [2, 3, 2]) {
      await unreviewed();
      await active(next);
    }
    await shown(page, 3).locator('.jp-InputArea-prompt').click();
    await page.keyboard.press('Control+Alt+Shift+E');
    await active(2);
    for (const index of [2, 3]) {
      await choose(page, shown(page, index), 'Mark Reviewed');
      await expect(shown(page, index)).toContainText('Reviewed by');
    }
    await unreviewed();
    await page
      .getByText('Every cell that an agent ran here is reviewed.')
      .first()
      .waitFor();
  }
);

notebookTest(
  'a review of a cell in a notebook stays there',
  async ({ desk, page }) => {
    await desk.open([codeCell('mine', '1')]);
    const agent = await desk.attach();
    await desk.run(agent, 'print(1)');
    const cell = shown(page, 1);
    await choose(page, cell, 'Mark Reviewed');
    await expect(cell).toContainText('Reviewed by');
    await choose(page, cell, 'Mark Reviewed');
    await expect(cell).not.toContainText('Reviewed by');
    await choose(page, cell, 'Flag');
    await expect(cell).toContainText('Flagged by');
    await choose(page, cell, 'Comment…');
    await page.getByRole('textbox', { name: 'Comment' }).fill('Why so?');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await expect(cell.getByTitle(/Flagged by .*\s+Why so\?/)).toBeVisible();
    // The keyboard is at the badge, whose keys are its own.
    await cell.locator('.jp-InputArea .cm-content').click();
    await page.keyboard.press('End');
    await page.keyboard.type('  # mine');
    await expect(cell).toContainText('Differs from what ran');
    await choose(page, cell, 'Compare With What Ran');
    const dialog = page.getByRole('dialog');
    await expect(dialog.locator('.cm-deletedChunk')).toContainText('print(1)');
    await expect(dialog.locator('.cm-changedLine')).toContainText('# mine');
    await expectAccessible(page);
    await page.screenshot({
      path: notebookTest.info().outputPath('differs.png')
    });
    await page.keyboard.press('Escape');
    await expect(dialog).toBeHidden();
    await page.evaluate(() =>
      window.jupyterapp.commands.execute('docmanager:save')
    );
    await desk.reopen();
    await expect(cell).toContainText('Flagged by');
  }
);
