/** A session as a notebook, where notebooks are edited together. */
import { expect } from '@jupyterlab/galata';
import { test } from './panel';

test('with collaboration a session opens as a notebook of its own, which nobody shares', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Shared by nobody');
  await agent.run('print("first")');
  const rooms: string[] = [];
  page.on('request', request => {
    if (/api\/collaboration\/(session|room)/.test(request.url())) {
      rooms.push(request.url());
    }
  });
  await panel.open();
  await panel.session('Shared by nobody').click();
  await panel.button('Open Agent Session').click();
  const shown = page.locator('.jp-AgentExecDocument:visible');
  await expect(shown.getByRole('note')).toContainText('1 cell');
  await agent.run('print("second")');
  await expect(shown.locator('.jp-OutputArea').nth(1)).toContainText('second');
  await expect(page.locator('.jp-Dialog')).toHaveCount(0);
  expect(rooms).toEqual([]);
});
