/** What a person thinks of agents' cells, and takes back. */
import { expect } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator, Page } from '@playwright/test';
import { codeCell } from './notebook';
import { leaveDialog, test as panelTest } from './panel';
import { shown, test as notebookTest } from './trust';

const ACTIVE = `from IPython.display import Javascript, display
display(Javascript("window.ran = true"))
print("said")`;

/** The cells of the notebook that is open, as they would be saved. */
function saved(page: Page): Promise<unknown[]> {
  return page.evaluate(() => {
    const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
    const { cells } = panel.context.model.sharedModel.toJSON();
    return cells.map(({ metadata, ...cell }) => ({
      ...cell,
      metadata: { ...metadata, trusted: undefined }
    }));
  });
}

/** Choose what a badge's menu offers. */
async function choose(page: Page, cell: Locator, item: string | RegExp) {
  await cell.getByRole('button', { name: 'More actions' }).click();
  await page
    .locator('.jp-AgentExecMenu .lm-Menu-item', { hasText: item })
    .click();
}

/** Take back what was just done. */
async function undo(page: Page) {
  const button = page.getByRole('button', { name: 'Undo' });
  await button.click();
  await expect(button).toHaveCount(0);
}

panelTest(
  'a session runs again, and each cell says how it compares',
  async ({ page, panel, newAgent }) => {
    const agent = await newAgent('Rolls a die');
    await agent.run('print(6)');
    await agent.run(
      'import random; print(random.random() < 2, random.random())'
    );
    await panel.open();
    await panel.session('Rolls a die').click();
    await panel.button('More actions for this session').click();
    await page
      .locator('.jp-AgentExecMenu .lm-Menu-item', { hasText: 'Again' })
      .click();
    await expect(panel.session('Re-run of Rolls a die')).toHaveAttribute(
      'aria-selected',
      'true'
    );
    await expect(panel.cell(1)).toContainText('Compared with before · same');
    await expect(panel.cell(2)).toContainText(
      'Compared with before · differs: What the code printed to stdout differs.'
    );
  }
);

panelTest(
  'a session is erased from the record once the person has seen what goes',
  async ({ page, panel, newAgent }) => {
    const agent = await newAgent('Printed a password');
    await agent.run('print("hunter2")');
    await panel.open();
    await panel.session('Printed a password').click();
    await expect(panel.cell(1)).toContainText('hunter2');
    const erase = async () => {
      await panel.button('More actions for this session').click();
      await page
        .locator('.jp-AgentExecMenu .lm-Menu-item', { hasText: 'Erase' })
        .click();
    };
    await erase();
    await expect(page.getByRole('dialog')).toContainText('Close it');
    await leaveDialog(page);

    await agent.close();
    await erase();
    const dialog = page.getByRole('dialog');
    await expect(dialog).toContainText('This cannot be undone');
    await leaveDialog(page);
    await expect(panel.cell(1)).toContainText('hunter2');

    await erase();
    await dialog.getByRole('button', { name: 'Erase' }).click();
    await expect(panel.cell(1)).not.toContainText('hunter2');
    await expect(panel.cell(1)).toContainText('Erased from the record');
  }
);

panelTest(
  'a review of a cell and of a session is there for everybody, and stays',
  async ({ page, context, panel, newAgent }) => {
    const agent = await newAgent('Looked through');
    await agent.run('print(1)');
    await agent.run('print(2)');
    await panel.open();
    await panel.session('Looked through').click();
    const review = panel.cell(1).getByRole('group', { name: /^Review of/ });
    const reviewed = review.getByRole('button', { name: 'Reviewed' });
    const whole = panel.region.getByRole('group', {
      name: 'Review of the session'
    });
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
    const region = other.getByRole('region', { name: 'Agent activity' });
    const theirs = region.locator('[aria-posinset="1"]');

    await reviewed.focus();
    await page.keyboard.press('Enter');
    await expect(reviewed).toHaveAttribute('aria-pressed', 'true');
    await expect(review).toContainText('Reviewed by');
    await expect(panel.session('Looked through')).toContainText('1 unreviewed');
    await expect(theirs).toContainText('Reviewed by');

    const say = review.getByRole('button', { name: 'Comment' });
    const field = page.getByRole('textbox', { name: 'Comment' });
    await say.click();
    await field.fill('never mind');
    await page.keyboard.press('Escape');
    await expect(field).toHaveCount(0);
    await expect(say).toBeFocused();
    await page.keyboard.press('Enter');
    await expect(field).toHaveValue('');
    await field.fill('<b>As</b> I\nthought');
    await page.getByRole('button', { name: 'Save' }).click();
    await expect(review).toContainText('<b>As</b> I');
    await expect(say).toBeFocused();
    await expect(theirs).toContainText('<b>As</b> I');
    await expect(reviewed).toHaveAttribute('aria-pressed', 'true');

    await whole.getByRole('button', { name: 'Flag all' }).click();
    await expect(panel.cell(2)).toContainText(
      /Flagged by .* \(whole session\)/
    );
    await expect(panel.cell(1)).toContainText('Reviewed by');
    await expect(region).toContainText(/Flagged by .* \(whole session\)/);
    await expect(panel.session('Looked through')).not.toContainText(
      'unreviewed'
    );

    await page.reload();
    await expect(panel.cell(1)).toContainText('Reviewed by');
    await expect(panel.cell(1)).toContainText('thought');
    await expect(panel.cell(2)).toContainText(
      /Flagged by .* \(whole session\)/
    );
    await reviewed.click();
    await expect(reviewed).toHaveAttribute('aria-pressed', 'false');
    await expect(theirs).toContainText('Commented on by');
    await other.close();
  }
);

notebookTest(
  'a discarded cell comes back, and unsaved edits stay',
  async ({ desk, page }) => {
    const notebook = await desk.open([codeCell('mine', '1')]);
    const agent = await desk.attach();
    await desk.run(agent, ACTIVE);
    await desk.run(agent, 'print("other")');
    await page.evaluate(() => {
      const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
      const mine = panel.context.model.cells.get(0);
      mine.sharedModel.setSource('unsaved');
    });
    const before = await saved(page);
    const discard = shown(page, 1).getByRole('button', { name: 'Discard' });
    await discard.click();
    await expect.poll(async () => (await saved(page)).length).toBe(2);
    await expect(page.locator(':focus')).toHaveCount(1);
    await undo(page);
    await expect.poll(() => saved(page)).toEqual(before);
    expect(await notebook.dirty()).toBe(true);
    await expect(shown(page, 1)).toContainText('said');

    await shown(page, 1).locator('.cm-content').click();
    await page.keyboard.type('# mine now\n');
    await expect(shown(page, 1)).toContainText('Differs from what ran');
    await expect(discard).toBeHidden();
  }
);

notebookTest(
  'what was decided about outputs is taken back',
  async ({ desk, page }) => {
    await desk.open([codeCell('mine', '1')]);
    const agent = await desk.attach();
    await desk.run(agent, ACTIVE);
    const before = await saved(page);
    const cell = shown(page, 1);
    await cell.getByRole('button', { name: 'Show', exact: true }).click();
    await expect.poll(() => saved(page)).not.toEqual(before);
    await undo(page);
    await expect.poll(() => saved(page)).toEqual(before);
    await choose(page, cell, 'Reviewed');
    await expect(cell).toContainText('Reviewed by');
    await choose(page, cell, 'Reviewed');
    await expect(cell).not.toContainText('Reviewed by');
    await choose(page, cell, 'Flag');
    await expect(cell).toContainText('Flagged by');
    await choose(page, cell, 'Comment…');
    await page.getByRole('textbox', { name: 'Comment' }).fill('Why so?');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await expect(cell.getByTitle(/Flagged by .*\s+Why so\?/)).toBeVisible();
    // The keyboard is at the badge, whose keys are its own.
    await page.evaluate(() =>
      window.jupyterapp.commands.execute('docmanager:save')
    );
    await desk.reopen();
    await expect(cell).toContainText('Flagged by');
  }
);

notebookTest(
  'all of a session is discarded, and comes back at once',
  async ({ desk, page }) => {
    await desk.open([codeCell('mine', '1')]);
    const agent = await desk.attach();
    await desk.run(agent, 'print(1)');
    await desk.run(agent, 'print(2)');
    await desk.run(agent, 'print(3)');
    const before = await saved(page);
    const done = page.locator('.jp-AgentExecDone');
    await choose(page, shown(page, 2), /^Discard All Cells/);
    await expect(done.getByRole('status')).toHaveText('3 cells discarded');
    await expect(done).toBeInViewport({ ratio: 1 });
    await expect.poll(async () => (await saved(page)).length).toBe(1);
    await undo(page);
    await expect.poll(() => saved(page)).toEqual(before);
  }
);
