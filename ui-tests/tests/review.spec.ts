/** What a person thinks of agents' cells, and takes back. */
import { expect } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator, Page } from '@playwright/test';
import { expectAccessible } from './axe';
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

/** Code that never prints the same, nor draws the same. */
const NEVER_THE_SAME = `
import os, struct, time, zlib
from IPython.display import Image
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\\0" + os.urandom(360) for _ in range(80))
head = chunk(b"IHDR", struct.pack(">IIBBBBB", 120, 80, 8, 2, 0, 0, 0))
print("<b>at</b> \u202e", time.time_ns())
Image(b"\\x89PNG\\r\\n\\x1a\\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
`;

/** Code that does not end when it runs the second time. */
const WAITS = `
import pathlib, time
times = pathlib.Path("times-of-a-die")
n = int(times.read_text()) if times.exists() else 0
times.write_text(str(n + 1))
while n == 1:
    time.sleep(0.1)
if n == 2:
    times.unlink()
`;

panelTest(
  'a session runs again, is stopped, and shows for each cell how it compares',
  async ({ page, panel, newAgent }) => {
    const agent = await newAgent('Rolls a die');
    await agent.run('print(6)');
    await agent.run(NEVER_THE_SAME);
    await agent.run(WAITS);
    await agent.run('1 / 0');
    await panel.open();
    await panel.session('Rolls a die').click();
    const runAgain = async () => {
      await choose(page, panel.region.getByRole('toolbar'), 'Again');
      await page
        .getByRole('dialog')
        .getByRole('button', { name: 'Run Again' })
        .click();
    };
    const view = page.locator('.jp-AgentExecComparison');
    const status = view.getByRole('status');
    const again = panel.session('Re-run of Rolls a die');
    await page.route('**/agent-exec/reruns*', route => route.abort());
    await runAgain();
    const failed = page.getByRole('alert').filter({ hasText: 'reached' });
    await expect(failed).toBeVisible();
    await failed.click();
    await page.unroute('**/agent-exec/reruns*');
    await expect(again).toHaveCount(0);

    await runAgain();
    await expect(again).toHaveAttribute('aria-selected', 'true');
    await expect(status).toHaveText('Cell 3 of 4 · 1 same · 1 differs');
    await expect(panel.cell(1)).toContainText('same');
    await view.getByRole('button', { name: 'Stop' }).click();
    await expect(status).toContainText('Stopped after');

    // It runs what ran first, not what ran again.
    await runAgain();
    await expect(again).toHaveCount(2);
    await expect(status).toHaveText('3 same · 1 differs');
    await view.getByRole('button', { name: 'Cell 2' }).click();
    const cell = panel.cell(2);
    await expect(cell).toBeFocused();
    await expect(cell).toContainText('printed to stdout differs');
    const diff = cell.getByRole('group', { name: 'printed to stdout' });
    await expect(diff).toContainText(/^-.*<b>at<\/b> U\+202E/m);
    const images = cell.getByRole('img', { name: 'Image output' });
    await expect(images).toHaveCount(2);
    await expectAccessible(page);
    await cell.getByText('Outputs before').click();
    await expect(images).toHaveCount(1);

    await view.getByRole('button', { name: 'session before' }).click();
    await expect(
      panel.session('Rolls a die').and(page.locator('[aria-selected="true"]'))
    ).toHaveCount(1);
    await expect(view).toBeHidden();
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
    const erase = () =>
      choose(page, panel.region.getByRole('toolbar'), 'Erase');
    await erase();
    await expect(page.getByRole('dialog')).toContainText(
      'Erase it after the agent has closed it'
    );
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
    const region = other.getByRole('region', { name: 'Agent activity' });
    const theirs = region.locator('[aria-posinset="1"]');

    await panel.choose(1, 'Mark reviewed');
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

    await panel.region
      .getByRole('toolbar')
      .getByRole('button', { name: 'More actions' })
      .click();
    await page.getByRole('menuitem', { name: 'Flag all' }).click();
    await expect(panel.cell(2)).toContainText(
      /Flagged by .* \(whole session\)/
    );
    await expect(panel.cell(1)).toContainText('Reviewed by');
    await expect(panel.session('Looked through')).not.toContainText(
      'unreviewed'
    );

    await page.reload();
    await expect(panel.cell(1)).toContainText('Reviewed by');
    await expect(panel.cell(1)).toContainText('thought');
    await expect(panel.cell(2)).toContainText(
      /Flagged by .* \(whole session\)/
    );
    await panel.choose(1, 'Reviewed');
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
    await choose(page, cell, 'Mark reviewed');
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
    await choose(page, shown(page, 2), /^Discard All Cells/);
    await expect(
      page.locator('.Toastify__toast', { hasText: '3 cells discarded' })
    ).toBeInViewport({ ratio: 1 });
    await expect.poll(async () => (await saved(page)).length).toBe(1);
    await undo(page);
    await expect.poll(() => saved(page)).toEqual(before);
  }
);
