/** A person gives an agent access on the server's page, sees what was given, and takes it back. */
import { expect } from '@jupyterlab/galata';
import { request as requests } from '@playwright/test';
import type { Page } from '@playwright/test';
import { violations } from './axe';
import { codeCell, Files, OpenNotebook } from './notebook';
import { tabTo, test } from './panel';

/** The tab that something opens. */
async function opened(page: Page, open: () => Promise<void>): Promise<Page> {
  const tab = page.context().waitForEvent('page', { timeout: 20_000 });
  await open();
  return tab;
}

test('a token is given by keyboard, shown once, and revoked', async ({
  page,
  panel,
  request,
  baseURL,
  tmpPath
}, { testId }) => {
  const name = `Claude ${testId.slice(-6)}`;
  const path = `${tmpPath}/in-front.ipynb`;
  await new Files(request, baseURL!).write(path, [codeCell('mine', 'x = 1')]);
  await OpenNotebook.open(page, path);
  const form = await opened(page, () =>
    page
      .getByRole('button', { name: 'Give an agent access to this notebook' })
      .click()
  );
  await form.setViewportSize({ width: 720, height: 900 });
  await expect(form.getByLabel('Name')).toBeFocused();
  const secret = form.getByLabel('The token', { exact: true });
  const ticked = form.getByRole('checkbox', { name: 'in-front.ipynb' });
  await expect(ticked).toBeChecked();
  for (const colorScheme of ['dark', 'light'] as const) {
    await form.emulateMedia({ colorScheme });
    expect(await violations(form, 'main')).toEqual([]);
  }
  await form.keyboard.press('ControlOrMeta+a');
  await form.keyboard.type(name);
  await tabTo(form, form.getByText('More options'));
  await form.keyboard.press('Enter');
  await tabTo(form, form.getByLabel('Sessions open at once'));
  await form.keyboard.type('2000');
  await form.keyboard.press('Enter');
  await expect(secret).toHaveCount(0); // the browser checks it
  await form.keyboard.press('Backspace');
  await form.keyboard.press('Enter');

  await expect(secret).toBeFocused();
  const token = (await secret.textContent())!;
  expect(token).toMatch(/^jaex_t_\w+$/);
  const copied = () => form.evaluate(() => navigator.clipboard.readText());
  await form.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await form.getByRole('button', { name: 'Copy' }).first().click();
  await expect(form.getByRole('button', { name: 'Copied' })).toHaveCount(1);
  expect(await copied()).toBe(token);
  await form.getByText('Claude Code: run in a terminal').click();
  await expect(form.getByLabel('Claude Code')).toContainText(
    `${baseURL}/api/agent-exec/mcp`
  );
  expect(await violations(form, 'main')).toEqual([]);
  const agent = await requests.newContext({
    extraHTTPHeaders: { Authorization: `Bearer ${token}` }
  });
  const works = async () =>
    (await agent.get(`${baseURL}/api/agent-exec/status`)).status();
  expect(await works()).toBe(200);
  await form.close();

  await panel.open();
  const list = await opened(page, () =>
    panel.button('Give an Agent Access…').first().press('Enter')
  );
  const item = list.locator('section').filter({
    has: list.getByRole('heading', { name, exact: true })
  });
  await expect(item).toContainText(`Run code: ${path}`);
  await expect(item).toContainText('Sessions open at once: at most 200');
  await expect(item).toContainText('Ends in 8 hours');
  await expect(item).toContainText('Last used 1 minute ago');
  await expect(list.locator('body')).not.toContainText(token.slice(-64));
  for (const colorScheme of ['dark', 'light'] as const) {
    await list.emulateMedia({ colorScheme });
    expect(await violations(list, 'main')).toEqual([]);
  }
  await tabTo(list, item.getByText('Revoke…'));
  await list.keyboard.press('Enter');
  await list.keyboard.press('Tab');
  await list.keyboard.press('Enter');
  await expect(list.getByRole('status')).toHaveText(
    `${name} has no access any more.`
  );
  expect(await works()).toBe(401);
  await agent.dispose();
  await list.close();
});
