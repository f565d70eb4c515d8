import { expect, test } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';

test('with collaboration, a notebook is a shared document', async ({
  page
}) => {
  await page.notebook.createNew();
  const collaborative = await page.evaluate(() => {
    const notebook = window.galata.app.shell.currentWidget as NotebookPanel;
    return notebook.content.model?.collaborative;
  });
  expect(collaborative).toBe(true);
});
