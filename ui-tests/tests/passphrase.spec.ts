/** A server that asks for its passphrase before a person decides. */
import { expect } from '@playwright/test';
import type { Locator, Page } from '@playwright/test';
import { AskingAgent, Question, Server } from './approval';
import { errorsOfOurs, openLab, test as base } from './lab';
import { OwnServer } from './ownserver';
import { keepInThemes } from './pictures';

const PASSPHRASE = 'five words of the tests';

const test = base.extend<{ url: string }>({
  url: async ({}, use) => {
    const server = await OwnServer.prepare({
      AGENT_EXEC_UI_PASSPHRASE: PASSPHRASE
    });
    await server.start();
    await use(server.url);
    await server.remove();
  },
  // The one that all tests share is not used.
  server: async ({ request, url }, use) => use(new Server(request, url))
});

/** Where the passphrase is typed. */
function asked(page: Page): Locator {
  return page.getByRole('dialog').filter({ hasText: 'Passphrase Required' });
}

/** All places in which a page could keep something. */
function kept(page: Page): Promise<string> {
  return page.evaluate(() =>
    JSON.stringify([
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      document.documentElement.outerHTML
    ])
  );
}

test('a decision asks for the passphrase, and the next one does not', async ({
  page,
  server,
  url,
  workspace
}) => {
  const errors = errorsOfOurs(page);
  const { id } = await server.send<{ id: string }>('post', 'sessions', {
    agent: { name: 'analyst' },
    title: 'Forecast'
  });
  const agent = new AskingAgent(server, id);
  const [first, second] = [await agent.ask('1 + 1'), await agent.ask('2 + 2')];
  const panel = await openLab(page, url, workspace);
  await panel.open();
  await panel.show('Forecast');
  const approve = () => Question.in(panel.cell(1)).answer('Approve');
  const dialog = asked(page);
  const field = dialog.locator('input');

  await approve();
  await expect(field).toBeFocused();
  await expect(field).toHaveAttribute('type', 'password');
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  expect((await agent.read(first)).status).toBe('awaiting_approval');

  await approve();
  await expect(field).toBeFocused();
  await field.fill('a guess');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText('Wrong passphrase.')).toBeVisible();
  await expect(field).toBeFocused();
  await keepInThemes(page, 'passphrase');
  await field.fill(PASSPHRASE);
  await page.keyboard.press('Enter');
  await expect(dialog).toHaveCount(0);
  await expect.poll(async () => (await agent.read(first)).status).toBe('ok');

  await Question.in(panel.cell(2)).answer('Approve');
  await expect.poll(async () => (await agent.read(second)).status).toBe('ok');
  await expect(dialog).toHaveCount(0);
  expect(await kept(page)).not.toContain(PASSPHRASE);

  // The form that gives access asks for it each time.
  const opened = page.context().waitForEvent('page', { timeout: 20_000 });
  await panel.button('Give an Agent Access…').click();
  const form = await opened;
  await form.getByLabel('Passphrase of this server').first().fill(PASSPHRASE);
  await form.keyboard.press('Enter');
  await expect(form.getByLabel('The token', { exact: true })).toBeFocused();
  expect(errors).toEqual([]);
});
