import { expect } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { started as test } from './panel';

test('without collaboration, JupyterLab is as it comes', async ({ page }) => {
  await page.notebook.createNew();
  const found = await page.evaluate(() => {
    const { app } = window.galata;
    const notebook = app.shell.currentWidget as NotebookPanel;
    return {
      collaborative: notebook.content.model?.collaborative,
      provider: app.hasPlugin('@jupyter/docprovider-extension:ynotebook'),
      // Two that the packages of collaboration switch off.
      executor: app.isPluginActivated(
        '@jupyterlab/notebook-extension:cell-executor'
      ),
      files: app.isPluginActivated(
        '@jupyterlab/filebrowser-extension:default-file-browser'
      )
    };
  });
  expect(found).toEqual({
    collaborative: false,
    provider: false,
    executor: true,
    files: true
  });
});
