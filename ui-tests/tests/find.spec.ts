import { expect } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator } from '@playwright/test';
import { holdScripts } from './scripts';
import { test } from './panel';
import type { Panel } from './panel';

/** The panel's search box. */
function box(panel: Panel): Locator {
  return panel.region.getByRole('textbox', { name: 'Search all' });
}

/** The cells that match. */
function hits(panel: Panel): Locator {
  return panel.region
    .getByRole('listbox', { name: 'Search results' })
    .getByRole('option');
}

test('a search finds what an old session printed, and leads to its cell', async ({
  page,
  panel,
  newAgent
}) => {
  const old = await newAgent('Search: old');
  for (const n of [1, 2, 3]) {
    await old.run(`print("quokka", ${n})`);
  }
  await old.run('print("a wombat among " + "quok" + "kas")');
  await old.close();
  await newAgent('Search: new');
  await panel.open();
  await panel.show('Search: new');

  await box(panel).pressSequentially('wombat', { delay: 10 });
  await expect(hits(panel)).toHaveCount(1);
  await expect(hits(panel).locator('mark')).toHaveText(['wombat']);
  await expect(hits(panel)).toContainText('“Search: old” · [4]');
  await expect(hits(panel)).toContainText('analyst');
  await expect(hits(panel)).toContainText('Done');
  await expect(panel.region.getByRole('search').getByRole('status')).toHaveText(
    '1 cell matches'
  );

  await box(panel).fill('quokka');
  await expect(hits(panel)).toHaveCount(4);
  await page.keyboard.press('ArrowDown');
  await expect(hits(panel).first()).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await expect(hits(panel).nth(1)).toContainText('[3]');
  await expect(hits(panel).nth(1)).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(panel.cell(3)).toBeFocused();
  await expect(panel.cell(3)).toContainText('quokka 3');
  await expect(hits(panel).nth(1)).toHaveAttribute('aria-selected', 'true');

  // In a small window, the matches are in view.
  const size = page.viewportSize()!;
  for (const [width, height] of [
    [1024, 700],
    [512, 350]
  ]) {
    await page.setViewportSize({ width, height });
    // JupyterLab lays out some time after the window has another size.
    await expect(async () => {
      const timeout = 1000;
      const hit = hits(panel).nth(1);
      await hit.scrollIntoViewIfNeeded();
      await expect(hit).toBeInViewport({ ratio: 1, timeout });
    }).toPass();
    const overlaps = () =>
      panel.region.evaluate(region => {
        const parts = Array.from(
          region.querySelectorAll(
            '.jp-SidePanel-header, .jp-SidePanel-toolbar, .jp-AgentExecSessions'
          ),
          each => each.getBoundingClientRect()
        ).filter(each => each.height > 0);
        return parts.flatMap((a, at) =>
          parts
            .slice(at + 1)
            .filter(b => a.top < b.bottom - 1 && b.top < a.bottom - 1)
        ).length;
      });
    await expect.poll(overlaps).toBe(0);
  }
  await page.setViewportSize(size);

  await hits(panel).nth(1).focus();
  await page.keyboard.press('Escape');
  await expect(box(panel)).toBeFocused();
  await expect(box(panel)).toHaveValue('');
  await expect(panel.session('Search: old')).toHaveAttribute(
    'aria-selected',
    'true'
  );
});

test('a search without a match, and with a server that fails', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Search: by status');
  await agent.run('raise RuntimeError("platypus")');
  await panel.open();
  await box(panel).fill('platypus');
  await expect(hits(panel)).toHaveText([/RuntimeError/]);
  await box(panel).fill('platypus egg');
  await expect(panel.region).toContainText('No cell matches');
  await page.route('**/api/agent-exec/search?**', route =>
    route.fulfill({
      status: 503,
      json: { message: 'It is read again.', code: 'history_unavailable' }
    })
  );
  await box(panel).fill('platypus again');
  const alert = panel.region.getByRole('alert');
  await expect(alert).toContainText('It is read again.');
  await page.unroute('**/api/agent-exec/search?**');
  await alert.getByRole('button', { name: 'Try again' }).click();
  await expect(panel.region).toContainText('No cell matches');
  await expect(box(panel)).toBeFocused();
  await panel.button('Clear the search').click();
  await expect(panel.session('Search: by status')).toBeVisible();
});

test.describe('in a page of its own', () => {
  test.use({ samePage: false });

  test('a match in a late cell is shown also where scripts come late', async ({
    page,
    panel,
    newAgent
  }) => {
    const agent = await newAgent('Search: long');
    for (let seq = 1; seq <= 50; seq++) {
      await agent.run(`${seq}`);
    }
    await agent.run('print("a numbat")');
    await panel.open();
    const release = await holdScripts(page);
    await box(panel).fill('numbat');
    await hits(panel).click();
    await expect
      .poll(() =>
        page.evaluate(() => {
          const { currentWidget } = window.jupyterapp.shell;
          return (currentWidget as NotebookPanel).content.widgets?.length;
        })
      )
      .toBe(51);
    release();
    await expect(panel.cell(51)).toBeFocused();
  });
});
