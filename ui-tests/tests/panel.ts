/** The panel as a person finds it: by roles, labels and words. */
import { expect, test as galata } from '@jupyterlab/galata';
import type { Locator, Page } from '@playwright/test';
import { Agent } from './agent';
import { endKernels, SamePage } from './samepage';

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
      .getByRole('listbox', { name: /^(Agent sessions|Closed)/ })
      .getByRole('option');
  }

  /** A session in the list. */
  session(title: string): Locator {
    return this.sessions.filter({ hasText: title });
  }

  /** The document of a session that is in front. */
  get document(): Locator {
    return this._page.locator(
      '.jp-NotebookPanel:visible:has(.jp-AgentExecSessionNotebook)'
    );
  }

  /**
   * Open the document of a session in the list.
   *
   * It takes the keyboard when it is there, also from where one types by then.
   */
  async show(title: string): Promise<void> {
    await this.session(title).click();
    await this.document.and(this._page.locator(':focus-within')).waitFor();
  }

  /** What the document says of the session. */
  get about(): Locator {
    return this.document.getByRole('group', { name: 'About this session' });
  }

  get cells(): Locator {
    return this.document.locator('.jp-CodeCell');
  }

  /** The cell with a number, as counted by the session. */
  cell(seq: number): Locator {
    const place = `[data-windowed-list-index="${seq - 1}"]`;
    return this.document.locator(`.jp-Cell${place}`);
  }

  /** A button in the document's toolbar. */
  tool(name: string | RegExp): Locator {
    return this.document.getByRole('toolbar').getByRole('button', { name });
  }

  /** Choose something in the menu of a cell. */
  async choose(seq: number, item: string): Promise<void> {
    await this.cell(seq).getByRole('button', { name: 'More actions' }).click();
    const menu = this._page.locator('.jp-AgentExecMenu');
    await menu.getByText(item, { exact: true }).click();
  }

  /** A button in the panel. */
  button(name: string | RegExp): Locator {
    return this.region.getByRole('button', { name });
  }
}

/** The dialog that is open, once it has the focus. */
export async function openedDialog(page: Page): Promise<Locator> {
  const dialog = page.getByRole('dialog');
  await dialog.locator(':focus').waitFor();
  return dialog;
}

/** Leave a dialog with the keyboard, once it has the focus. */
export async function leaveDialog(page: Page): Promise<void> {
  const dialog = await openedDialog(page);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
}

/** A menu of a button's has opened, and takes keys. */
export async function menuOpened(page: Page): Promise<void> {
  await page.locator('.jp-AgentExecMenu:focus-within').waitFor();
}

/** Lead the keyboard to an element with a key alone. */
export async function tabTo(
  page: Page,
  to: Locator,
  key: 'Tab' | 'Shift+Tab' = 'Tab'
): Promise<void> {
  await to.waitFor();
  const isThere = () => to.evaluate(node => node.matches(':focus'));
  for (let n = 0; n < 150 && !(await isThere()); n++) {
    await page.keyboard.press(key);
  }
  await expect(to).toBeFocused();
}

/**
 * Tests that begin when JupyterLab has focused its launcher, its last step.
 *
 * After a reload there may be what was open before instead.
 */
export const started = galata.extend<
  { samePage: boolean },
  { pageOfTests: SamePage }
>({
  // Whether tests, one after the other, have the same page. A test that leaves
  // in it what `SamePage.reset` does not put in order needs one of its own.
  samePage: [true, { option: true }],
  pageOfTests: [
    async ({ browser }, use) => {
      const same = new SamePage(browser);
      await use(same);
      await same.close();
    },
    { scope: 'worker' }
  ],
  context: async ({ page }, use) => use(page.context()),
  page: async (
    {
      samePage,
      pageOfTests,
      request,
      baseURL,
      mockSettings,
      waitForApplication
    },
    use,
    info
  ) => {
    const options = {
      baseURL: baseURL!,
      file: samePage ? info.file : info.testId,
      mockSettings,
      waitForApplication
    };
    await use(await pageOfTests.open(options));
    if (samePage && info.status === info.expectedStatus) {
      await pageOfTests.reset(options);
    } else {
      await pageOfTests.close();
    }
    await endKernels(request, baseURL!);
  },
  waitForApplication: async ({}, use) => {
    await use(async page => {
      await page.locator('#jupyterlab-splash').waitFor({ state: 'detached' });
      await page
        .locator('.jp-Launcher:focus-within, .jp-Document')
        .first()
        .waitFor({ state: 'attached' });
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

/** What the button in a document's toolbar is called that stops its agent. */
export const INTERRUPT = /^Stop /;
