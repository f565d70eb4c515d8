/** What a person sees who has no history yet: on a server of their own. */
import { expect } from '@jupyterlab/galata';
import { OwnServer } from './ownserver';
import { test as base } from './panel';

const test = base.extend({
  baseURL: async ({}, use) => {
    const server = await OwnServer.prepare();
    await server.start();
    await use(server.url);
    await server.remove();
  }
});

test('the panel says what it is for, and shows the first session as it is opened', async ({
  page,
  panel,
  newAgent
}) => {
  await panel.open();
  await expect(panel.region).toContainText('No agent has worked here yet');
  await expect(panel.region).toContainText('jupyter agent-exec run');
  const agent = await newAgent('Sales by region');
  const session = panel.session('Sales by region');
  await expect(session).toContainText('analyst');
  // Jupyter Server never ends if it is stopped while it answers this.
  const formats = page.waitForResponse(/\/api\/nbconvert/);
  await session.click();
  await expect(panel.cell(1)).toContainText('No agent has run anything');
  await expect(session).toHaveAttribute('aria-selected', 'true');
  await agent.run('x = 20 + 1\nprint("answer:", x * 2)');
  const cell = panel.cell(1);
  await expect(cell).toContainText('Done');
  await expect(cell).toContainText('analyst');
  await expect(cell.locator('time')).toBeVisible();
  await expect(cell).toContainText('x = 20 + 1');
  await expect(cell.locator('.cm-content span').first()).toBeVisible();
  await expect(cell).toContainText('answer: 42');
  await expect(session).toContainText('1 cell');
  await formats;
});
