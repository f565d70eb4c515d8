/** A session as a live notebook that can only be read. */
import { expect } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator, Page } from '@playwright/test';
import { INTERRUPT, test } from './panel';

/** What the button of the panel is called. */
const OPEN = 'Open Agent Session';

/** The document of a session. */
function documentOf(page: Page): Locator {
  return page.locator('.jp-AgentExecDocument:visible');
}

test('a session opens as a notebook that follows it and cannot be changed', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Followed from beside');
  await agent.run('print("first")');
  await panel.open();
  await panel.session('Followed from beside').click();
  await panel.button(OPEN).click();
  const shown = documentOf(page);
  await expect(shown).toContainText('first');
  await expect(shown.getByRole('note')).toContainText(
    'Agent session, read-only'
  );
  await expect(
    page.getByRole('tab', { name: 'Followed from beside' })
  ).toBeVisible();
  // It follows.
  await agent.run('print("second")\nprint("more of it")');
  await expect(shown).toContainText('more of it');
  await expect(shown.locator('.jp-CodeCell')).toHaveCount(2);
  await expect(shown.getByRole('note')).toContainText('2 cells');
  // It cannot be changed, nor saved.
  await shown.locator('.cm-content').first().click();
  await page.keyboard.type('changed');
  await page.keyboard.press('Control+s');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.press('Escape');
  await page.keyboard.press('d');
  await page.keyboard.press('d');
  await expect(shown.locator('.jp-CodeCell')).toHaveCount(2);
  await expect(shown).not.toContainText('changed');
  await expect(page.locator('.jp-Dialog')).toHaveCount(0);
  await expect(shown.getByText('Click to add a cell.')).toBeHidden();
  // Keys go from cell to cell.
  const active = shown.locator('.jp-Cell.jp-mod-active');
  await expect(active).toContainText('first');
  await page.keyboard.press('ArrowDown');
  await expect(active).toContainText('second');
  await page.keyboard.press('ArrowUp');
  await expect(active).toContainText('first');
  // No kernel was started for it.
  const response = await page.request.get('api/sessions');
  const started: { path: string }[] = await response.json();
  expect(started.map(({ path }) => path)).not.toContainEqual(
    expect.stringContaining(agent.sessionId)
  );
});

test('a document streams, and comes back when the page is loaded again', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Streamed');
  await agent.run('1 + 1');
  await panel.open();
  await panel.session('Streamed').click();
  // The layout is kept a moment after it has changed.
  const kept = page.waitForResponse(
    response =>
      response.request().method() === 'PUT' &&
      (response.request().postData() ?? '').includes('agent-exec-documents')
  );
  await panel.button(OPEN).click();
  const shown = documentOf(page);
  const { id } = await agent.begin(
    'import time\nn = 0\nwhile n < 3000:\n    n += 1\n    print("round", n, flush=True)\n    time.sleep(0.02)'
  );
  await expect(shown).toContainText('round 5');
  await expect(shown).toContainText(/round \d\d/);
  await kept;
  await page.waitForURL(/AgentExec/, { timeout: 15000 });
  await page.reload();
  await expect(shown).toContainText(/round \d\d\d/);
  await expect(shown.getByRole('note')).toContainText('open');
  await panel.button(INTERRUPT).click();
  await expect.poll(() => agent.status(id)).toBe('interrupted');
  await expect(shown).toContainText('KeyboardInterrupt');
  const same = await page.evaluate(() => {
    const panels = Array.from(
      window.jupyterapp.shell.widgets('main')
    ) as NotebookPanel[];
    const found = panels.find(each => each.hasClass('jp-AgentExecDocument'))!;
    return found.context.model.dirty;
  });
  expect(same).toBe(false);
});
