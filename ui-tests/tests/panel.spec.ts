import { expect } from '@jupyterlab/galata';
import { readFileSync } from 'node:fs';
import { openLab } from './lab';
import { test } from './panel';

/** What the button is called. */
const OPEN = 'Open Agent Session as Notebook';

test('an error shows its traceback, an image its picture', async ({
  panel,
  newAgent
}) => {
  const agent = await newAgent('Rich');
  await panel.open();
  await panel.show('Rich');
  await agent.run('{}["missing"]');
  await agent.run(
    'import base64\nfrom IPython.display import Image\n' +
      'Image(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))'
  );
  await agent.run(
    'from IPython.display import HTML\nHTML("<table><tr><td>cell of a table</td></tr></table>")'
  );
  await expect(panel.cell(1)).toContainText('Error');
  await expect(panel.cell(1)).toContainText("KeyError: 'missing'");
  await expect(panel.cell(2).getByRole('img')).toBeVisible();
  await expect(panel.cell(3).getByRole('cell')).toHaveText('cell of a table');
});

test('outputs are not trusted', async ({ page, panel, newAgent }) => {
  const agent = await newAgent('Untrusted');
  await panel.open();
  await panel.show('Untrusted');
  await agent.run(
    'from IPython.display import HTML, Javascript, SVG, display\n' +
      'display(HTML("<b>kept</b><script>window.fired = 1</script>"))\n' +
      'display(HTML("<img src=x onerror=\'window.fired = 2\'>"))\n' +
      'display(Javascript("window.fired = 3"))\n' +
      "display(SVG(\"<svg xmlns='http://www.w3.org/2000/svg' onload='window.fired = 4'></svg>\"))\n" +
      'display(HTML("<a href=\'javascript:window.fired = 5\'>link</a>"))\n' +
      'print("end")'
  );
  const cell = panel.cell(1);
  await expect(cell.locator('b', { hasText: 'kept' })).toBeVisible();
  await expect(cell).toContainText('end');
  await cell.getByText('link', { exact: true }).click();
  await expect(cell.locator('script, [onerror], [onload]')).toHaveCount(0);
  expect(await page.evaluate(() => 'fired' in window)).toBe(false);
});

test('what the server left out of an output is said, and can be read', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Long');
  await panel.open();
  await panel.show('Long');
  await agent.run('for i in range(30000):\n    print("many", i)');
  const capped = panel.cell(1);
  await expect(capped).toContainText(/\d+ kB left out, [\d,.]+ lines/);
  await capped.getByRole('button', { name: 'Open Full Output' }).click();
  const viewer = page.getByRole('tabpanel', { name: 'Full output' });
  const text = viewer.getByLabel('Full output');
  await expect(text).toContainText('many 0\n');
  const more = page.getByRole('button', { name: 'Show more' });
  while (await more.isVisible()) {
    await more.click();
    await expect(viewer.getByText('Loading…', { exact: true })).toBeHidden();
  }
  await expect(text).toContainText('many 29999\n');
});

test('a closed session says why', async ({ panel, newAgent }) => {
  const agent = await newAgent('Brief');
  await panel.open();
  await panel.show('Brief');
  await expect(panel.cell(1)).toContainText(
    'No agent has run anything in this session'
  );
  await agent.run('"its only cell"');
  await agent.close();
  await expect(panel.session('Brief')).toContainText('Closed');
  await expect(panel.cell(1)).toContainText('its only cell');
  await expect(panel.about).toContainText('Closed by “analyst”');
});

test('a session is opened as a notebook of one’s own', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Kept: a/b');
  await agent.run('6 * 7');
  await panel.open();
  await panel.show('Kept: a/b');
  await expect(panel.cell(1)).toContainText('42');

  // The session's document is called like the first.
  for (const [name, count] of [
    ['Agent session Kept a b.ipynb', 2],
    ['Agent session Kept a b (2).ipynb', 1]
  ] as const) {
    await panel.show('Kept: a/b');
    await panel.tool(OPEN).click();
    await expect(
      page.getByRole('main').getByRole('tab', { name, exact: true })
    ).toHaveCount(count);
  }
  const opened = page.getByRole('main').locator('.jp-NotebookPanel:visible');
  await expect(opened).toContainText('6 * 7');
  await expect(opened).toContainText('42');
});

test('a session is exported for a colleague, who sees that it runs', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('For Ada');
  await agent.run('x = 1\nraise ValueError("folded")');
  await agent.run('print(6 * 7)');
  await panel.open();
  await panel.show('For Ada');
  await panel.tool('More actions').click();
  await page
    .getByRole('menuitem', { name: 'Export for a Colleague', exact: true })
    .click();
  const told = page.getByText('The server tries whether');
  await expect(told.first()).toBeVisible();
  await expect(
    page.getByRole('main').getByRole('tab', { selected: true })
  ).toHaveText('Agent session For Ada.ipynb');
  const opened = page.getByRole('main').locator('.jp-NotebookPanel:visible');
  await expect(opened.getByRole('heading', { name: 'For Ada' })).toBeVisible();
  await expect(opened).toContainText(/Checked on .* runs from start to end/);
  await expect(opened).toContainText('Folded: 1 execution that failed.');
  await expect(opened).toContainText('print(6 * 7)');
  await expect(opened.getByText('ValueError')).toHaveCount(0);
  await expect(told).toHaveCount(0);
});

test('the document of a session is there again after a reload', async ({
  page,
  panel,
  newAgent
}) => {
  const first = await newAgent('First of two');
  await first.run('"the first"');
  await newAgent('Second of two');
  await panel.open();
  const saved = page.waitForResponse(
    response =>
      response.url().includes('/api/workspaces') &&
      response.request().method() === 'PUT' &&
      (response.request().postData() ?? '').includes(first.sessionId)
  );
  await panel.show('First of two');
  await expect(panel.cell(1)).toContainText('the first');
  await saved;
  await page.reload();
  await expect(panel.region).toBeVisible();
  await expect(panel.session('First of two')).toHaveAttribute(
    'aria-selected',
    'true'
  );
  await expect(panel.cell(1)).toContainText('the first');
  await expect(page).toHaveURL(/\/tree\/AgentSession(:|%3A)/);
  await expect(page.getByRole('dialog')).toHaveCount(0);
});

test('the keyboard leads through the list, and opens a session', async ({
  page,
  panel,
  newAgent
}) => {
  const older = await newAgent('Older');
  await older.run('"of the older"');
  const newer = await newAgent('Newer');
  await newer.run('"first"');
  await newer.run('"last"');
  await panel.open();
  await panel.show('Newer');
  await expect(panel.cells).toHaveCount(2);

  await panel.session('Newer').focus();
  await page.keyboard.press('ArrowDown');
  await expect(panel.session('Older')).toBeFocused();
  await expect(panel.cells).toHaveCount(2);
  await page.keyboard.press('Enter');
  await expect(panel.cell(1)).toContainText('of the older');
  await expect(panel.cells).toHaveCount(1);
});

test('those who listen hear that a cell has finished', async ({
  panel,
  newAgent
}) => {
  const agent = await newAgent('Heard');
  await panel.open();
  await panel.show('Heard');
  await expect(panel.cell(1)).toContainText('No agent has run anything');
  await agent.begin('import time; time.sleep(1)');
  const told = panel.document.getByRole('status');
  await expect(told.filter({ hasText: '[1]: Done' })).toHaveCount(1);
});

test('the panel opens from the palette and the menu', async ({
  page,
  panel
}) => {
  await page.menu.clickMenuItem('View>Show Agent Activity');
  await expect(panel.region).toBeVisible();
  const { ids, undescribed } = await page.evaluate(async () => {
    const { commands } = window.jupyterapp;
    const ids = commands
      .listCommands()
      .filter(id => id.startsWith('agent-exec:'));
    const all = await Promise.all(ids.map(id => commands.describedBy(id)));
    return {
      ids,
      undescribed: ids.filter((_, place) => all[place].args === null)
    };
  });
  expect(ids).toContain('agent-exec:open-panel');
  expect(undescribed).toEqual([]);
});

test('the workspace of the demo has the panel beside a session', async ({
  baseURL,
  newAgent,
  page,
  request
}) => {
  const agent = await newAgent('Demo');
  await agent.run('print("of the", "demo")');
  const file = '../examples/demo.jupyterlab-workspace';
  const { data } = JSON.parse(readFileSync(file, 'utf-8'));
  const id = 'of-the-demo';
  const saved = await request.put(`${baseURL}/lab/api/workspaces/${id}`, {
    data: { data, metadata: { id } }
  });
  expect(saved.ok()).toBe(true);
  const other = await page.context().newPage();
  const path = `AgentSession:${agent.sessionId}/Agent session Demo.ipynb`;
  const panel = await openLab(other, baseURL!, id, path);
  await expect(panel.cell(1)).toContainText('of the demo');
  await expect(panel.session('Demo')).toBeVisible();
  await expect(panel.session('Demo')).toHaveAttribute('aria-selected', 'true');
  await other.close();
});

test.describe('with routes of its own', () => {
  test.use({ samePage: false });

  test('a server that cannot be reached is told, and then reached again', async ({
    page,
    panel,
    newAgent
  }) => {
    const agent = await newAgent('After the storm');
    await agent.run('"calm"');
    await page.route('**/api/agent-exec/**', route => route.abort());
    await panel.open();
    const alert = panel.region.getByRole('alert');
    await expect(alert).toContainText('The server cannot be reached');
    await page.unroute('**/api/agent-exec/**');
    await alert.getByRole('button', { name: 'Try again' }).click();
    await panel.show('After the storm');
    await expect(panel.cell(1)).toContainText('calm');
    await expect(alert).toHaveCount(0);
  });

  test('a server without the extension says how to enable it', async ({
    page,
    panel
  }) => {
    await page.route('**/api/agent-exec/sessions?**', route =>
      route.fulfill({ status: 404, body: 'Not Found' })
    );
    await panel.open();
    await expect(panel.region.getByRole('alert')).toContainText(
      'jupyter server extension enable jupyter_agent_exec'
    );
  });

  test('an action that the server refuses says why', async ({
    page,
    panel,
    newAgent
  }) => {
    await newAgent('Refused');
    await panel.open();
    await panel.show('Refused');
    await page.route('**/notebook**', route =>
      route.fulfill({
        status: 503,
        json: {
          message: 'The record cannot be read.',
          reason: null,
          code: 'history_unavailable',
          detail: {}
        }
      })
    );
    await panel.tool(OPEN).click();
    await expect(
      page.getByText(
        'The server refused the request. The record cannot be read.'
      )
    ).toBeVisible();
  });
});
