/**
 * JupyterLab as a browser opens it, of whatever version: without Galata's
 * pages, which fit one version only.
 */
import { test as base } from '@playwright/test';
import type { Page } from '@playwright/test';
import { Agent } from './agent';
import { Server } from './approval';
import { Panel } from './panel';

/** Open a workspace of its own, with a file if one is named. */
export async function openLab(
  page: Page,
  baseURL: string,
  workspace: string,
  path = ''
): Promise<Panel> {
  const tree = path && `/tree/${path}`;
  await page.goto(`${baseURL}/lab/workspaces/${workspace}${tree}`);
  await page.waitForFunction(() => window.jupyterapp?.restored);
  return new Panel(page);
}

/** Tests with a page of JupyterLab, and agents that are closed afterwards. */
export const test = base.extend<{
  server: Server;
  workspace: string;
  newAgent: (title: string) => Promise<Agent>;
}>({
  server: async ({ request, baseURL }, use) => {
    const server = new Server(request, baseURL!);
    await use(server);
    await server.setPolicy({ notebook: 'none', scratch: 'none' });
  },
  workspace: async ({}, use, { testId }) => use(`test-${testId}`),
  newAgent: async ({ request, baseURL }, use) => {
    const agents: Agent[] = [];
    await use(async title => {
      agents.push(await Agent.open(request, baseURL!, title));
      return agents[agents.length - 1];
    });
    for (const agent of agents) {
      await agent.close();
    }
  }
});

/** What was thrown in a page by this extension. */
export function errorsOfOurs(page: Page): string[] {
  const ours: string[] = [];
  page.on('pageerror', ({ stack = '' }) => {
    if (stack.includes('extensions/jupyter-agent-exec')) {
      ours.push(stack);
    }
  });
  return ours;
}
