/** Tests with a page that is watched while it shows what agents wrote. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Page } from '@playwright/test';
import { Server } from './approval';
import { Listener } from './listener';
import { Panel } from './panel';
import { test as base } from './trust';
import { Watch } from './watch';

/** Tests with a desk, the panel, and one who hears what is sent. */
export const test = base.extend<{
  listener: Listener;
  panel: Panel;
  server: Server;
  watch: Watch;
}>({
  // What is watched for stays watched.
  samePage: async ({}, use) => use(false),
  listener: async ({}, use) => {
    const listener = await Listener.open();
    await use(listener);
    listener.close();
  },
  panel: async ({ page }, use) => use(new Panel(page)),
  server: async ({ request, baseURL }, use) => {
    const server = new Server(request, baseURL!);
    await use(server);
    await server.setPolicy({ notebook: 'none', scratch: 'none' });
  },
  watch: async ({ page, listener, baseURL }, use) => {
    await use(new Watch(page, listener, baseURL!));
  }
});

/** Do something as a command does. */
export function command(page: Page, id: string, args: object): Promise<void> {
  return page.evaluate(
    async ([id, args]) => {
      await window.jupyterapp.commands.execute(id as string, args as never);
    },
    [id, args] as const
  );
}

/** Bring a cell of the notebook in front into sight. */
export async function toCell(page: Page, index: number): Promise<void> {
  await page.waitForFunction(index => {
    const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
    return panel.content.widgets.length > index;
  }, index);
  await page.evaluate(async index => {
    const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
    panel.content.activeCellIndex = index;
    await panel.content.scrollToItem(index, 'start');
    await panel.content.widgets[index].ready;
  }, index);
}
