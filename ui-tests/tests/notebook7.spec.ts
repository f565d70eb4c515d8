/** An agent in a notebook that a person has open in Jupyter Notebook. */
import { expect, test } from '@playwright/test';
import type { Page } from '@playwright/test';
import { codeCell, Files, NotebookAgent, OpenNotebook } from './notebook';

/** What collaboration brings, and instead of what. */
const COLLABORATION = [
  '@jupyter/collaboration-extension',
  '@jupyter/docprovider-extension'
];

/**
 * Leave out of the page what would need a server with collaboration.
 *
 * Not by another answer of the server: the browser would not let such a page
 * open WebSockets.
 */
async function withoutCollaboration(page: Page): Promise<void> {
  await page.addInitScript(disabledExtensions => {
    new MutationObserver((_, observer) => {
      const config = document.getElementById('jupyter-config-data');
      if (config) {
        observer.disconnect();
        const options = JSON.parse(config.textContent ?? '');
        config.textContent = JSON.stringify({ ...options, disabledExtensions });
      }
    }).observe(document, { childList: true, subtree: true });
  }, COLLABORATION);
}

test('in Jupyter Notebook an agent’s cell comes through the page, with badge and toolbar', async ({
  page,
  request,
  baseURL
}) => {
  // It has errors of its own: what JupyterLab's extensions ask for is not all there.
  const ours: string[] = [];
  page.on('pageerror', ({ stack = '' }) => {
    if (stack.includes('extensions/jupyter-agent-exec')) {
      ours.push(stack);
    }
  });
  const files = new Files(request, baseURL!);
  const path = 'in-notebook-7.ipynb';
  await files.write(path, [codeCell('mine', 'x = 1')]);
  await withoutCollaboration(page);
  await page.goto(`${baseURL}/notebooks/${path}`);
  await new OpenNotebook(page, path).ready(request, baseURL!);
  await page.locator('.jp-Cell .cm-content').click();
  await page.keyboard.press('End');
  await page.keyboard.type('00  # not saved');
  const agent = await NotebookAgent.open(request, baseURL!, path);
  try {
    expect(await agent.run('print(6 * 7)')).toBe('tab');
    const badge = page.getByRole('group', { name: /^Agent analyst/ });
    await expect(badge).toContainText('Done');
    await expect(page.getByText('42', { exact: true })).toBeVisible();
    await expect(page.getByText('x = 100  # not saved')).toBeVisible();
    await expect(
      page.locator('.jp-Toolbar-item[data-jp-item-name="agent-exec:status"]')
    ).toContainText('analyst');
    await page.keyboard.press('Control+s');
    await expect
      .poll(() => files.cells(path))
      .toEqual([
        { source: 'x = 100  # not saved', text: '' },
        { source: 'print(6 * 7)', text: '42\n' }
      ]);
  } finally {
    await agent.close();
  }
  expect(ours).toEqual([]);
});
