/** The panel as a person finds it: by roles, labels and words. */
import { test as galata } from '@jupyterlab/galata';
import type { Locator, Page } from '@playwright/test';
import { Agent } from './agent';

/** "Agent activity". */
export class Panel {
  constructor(private readonly _page: Page) {}

  /** Open it, as the tab at the side does. */
  async open(): Promise<void> {
    await this._page.getByRole('tab', { name: 'Agent activity' }).click();
    await this.region.waitFor();
  }

  get region(): Locator {
    return this._page.getByRole('region', { name: 'Agent activity' });
  }

  get sessions(): Locator {
    return this.region
      .getByRole('listbox', { name: 'Agent sessions' })
      .getByRole('option');
  }

  /** A session in the list. */
  session(title: string): Locator {
    return this.sessions.filter({ hasText: title });
  }

  get feed(): Locator {
    return this.region.getByRole('feed');
  }

  get cells(): Locator {
    return this.feed.getByRole('article');
  }

  /** The cell with a number, as counted by the session. */
  cell(seq: number): Locator {
    return this.feed.locator(`[aria-posinset="${seq}"]`);
  }

  /** A button in the panel. */
  button(name: string | RegExp): Locator {
    return this.region.getByRole('button', { name });
  }
}

/** Leave a dialog with the keyboard, once it has the focus. */
export async function leaveDialog(page: Page): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.locator(':focus').waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
}

/** Tests that begin when JupyterLab has focused its launcher, its last step. */
export const started = galata.extend({
  waitForApplication: async ({ waitForApplication }, use) => {
    await use(async (page, helpers) => {
      await waitForApplication(page, helpers);
      await page.locator('.jp-Launcher:focus-within').waitFor();
    });
  }
});

/** Tests with a panel, and agents that are closed when the test is over. */
export const test = started.extend<{
  panel: Panel;
  newAgent: (title: string, initSource?: string) => Promise<Agent>;
}>({
  panel: async ({ page }, use) => {
    await use(new Panel(page));
  },
  newAgent: async ({ request, baseURL }, use) => {
    const agents: Agent[] = [];
    await use(async (title, initSource) => {
      const agent = await Agent.open(request, baseURL ?? '', title, initSource);
      agents.push(agent);
      return agent;
    });
    for (const agent of agents) {
      await agent.close();
    }
  }
});

/** What the button above the cells is called that stops an agent. */
export const INTERRUPT = /^Stop .*, in the selected agent session/;
