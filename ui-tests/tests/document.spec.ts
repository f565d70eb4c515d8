/** A session as a document: a notebook of JupyterLab's own that can only be read. */
import { expect } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Page } from '@playwright/test';
import { INTERRUPT, test } from './panel';

const PICTURE =
  'import base64\nfrom IPython.display import Image\n' +
  'Image(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))';

/** Whether the document in front has unsaved changes. */
function isDirty(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
    return panel.context.model.dirty;
  });
}

test('a session opens from the list as a notebook that follows the agent', async ({
  page,
  panel,
  newAgent,
  request,
  baseURL
}) => {
  const agent = await newAgent('Sales: by region');
  await agent.run('x = 1\nprint("hello")');
  await agent.run(PICTURE);
  await panel.open();
  await panel.show('Sales: by region');
  await expect(
    page.getByRole('main').getByRole('tab', { selected: true })
  ).toHaveText('Agent session Sales by region.ipynb');
  await expect(panel.cells).toHaveCount(2);
  await expect(panel.cell(1)).toContainText('hello');
  await expect(panel.cell(2).getByRole('img')).toBeVisible();
  const { id } = await agent.begin(
    'n = 0\nimport time\nwhile True:\n    n += 1\n    print("round", n, flush=True)\n    time.sleep(0.05)'
  );
  await expect(panel.cell(3)).toContainText(/Running/);
  await expect(panel.cell(3)).toContainText(/round \d\d/);
  await panel.tool(INTERRUPT).click();
  await expect(panel.cell(3)).toContainText('Interrupted');
  await expect(panel.cell(3)).toContainText('KeyboardInterrupt');
  await expect.poll(() => agent.status(id)).toBe('interrupted');
  await expect(panel.tool(INTERRUPT)).toBeDisabled();
  // Nothing is to be saved, and no kernel was started for it.
  await expect.poll(() => isDirty(page)).toBe(false);
  const sessions = await request.get(`${baseURL}/api/sessions`);
  expect(await sessions.json()).toEqual([]);
  await page.keyboard.press('Escape');
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('application:close')
  );
  await expect(panel.document).toHaveCount(0);
});

test('a long session opens with its first cells, and gets the rest', async ({
  page,
  panel,
  newAgent
}) => {
  const count = 60;
  const agent = await newAgent('Long');
  for (let seq = 1; seq <= count; seq++) {
    await agent.run(`print("row", ${seq})`);
  }
  let release = () => {};
  const rest = new Promise<void>(resolve => (release = resolve));
  await page.route(/executions\?after=50&/, async route => {
    await rest;
    await route.continue();
  });
  await panel.open();
  await panel.show('Long');
  await expect(panel.cell(1)).toContainText('row 1');
  await expect(panel.document).toContainText('Loading cells: 50 of 60');
  // Who else reads the file gets all of it, and waits for that.
  const read = page.evaluate(async path => {
    const { contents } = window.jupyterapp.serviceManager;
    return (await contents.get(path)).content.cells.length as number;
  }, `AgentSession:${agent.sessionId}/Long.ipynb`);
  release();
  expect(await read).toBe(count);
  await expect
    .poll(() =>
      page.evaluate(
        () =>
          (window.jupyterapp.shell.currentWidget as NotebookPanel).content
            .widgets.length
      )
    )
    .toBe(count);
  await expect(panel.document).not.toContainText('Loading cells');
});

test('what failed out of sight is told in one line, and the head leads to it', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Away');
  await agent.run('print(1)');
  await agent.run('1 / 0');
  await agent.run('print(3)');
  const told = page.getByText('“analyst” ran 3 cells · 1 failed');
  await told.waitFor();
  await page.getByRole('button', { name: 'Show Failed' }).click();
  await expect(panel.cell(2)).toBeFocused();
  await expect(told).toHaveCount(0);
  await panel.about.getByRole('button', { name: '3 unreviewed' }).click();
  await expect(panel.cell(3)).toBeFocused();
  await panel.about.getByRole('button', { name: '1 failed' }).click();
  await expect(panel.cell(2)).toBeFocused();
});
