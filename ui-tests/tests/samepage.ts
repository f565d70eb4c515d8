/** One page for many tests: JupyterLab takes seconds to start. */
import { galata } from '@jupyterlab/galata';
import type {
  IJupyterLabPage,
  IJupyterLabPageFixture
} from '@jupyterlab/galata';
import type { APIRequestContext, Browser, Page } from '@playwright/test';

/** Settings of JupyterLab's plugins. */
type Settings = Record<string, unknown>;

/** Which page a test needs. */
export interface IPageOptions {
  baseURL: string;
  /** The file whose tests share the page. */
  file: string;
  mockSettings: boolean | Settings;
  /** Waits until JupyterLab shows its launcher. */
  waitForApplication: (page: Page, helpers: IJupyterLabPage) => Promise<void>;
}

/** The page that tests share. */
export class SamePage {
  constructor(private readonly _browser: Browser) {}

  /** The page as the last test has left it, or a new one. */
  async open(options: IPageOptions): Promise<IJupyterLabPageFixture> {
    const { baseURL, file } = options;
    const key = `${baseURL} ${file}`;
    const settings = { ...(options.mockSettings as Settings) };
    if (!this._page || this._key !== key) {
      await this.close();
      const { page } = await galata.newPage({
        ...options,
        autoGoto: false,
        browser: this._browser,
        // Its stand-ins hide what others have started, and fail at an interrupt.
        mockKernels: false,
        mockSessions: false,
        mockTerminals: false
      });
      await page.addInitScript(keepNotifications);
      await page.goto('?reset');
      page.on('load', () => (this._loadedAgain = true));
      this._loadedAgain = false;
      this._page = page;
      this._key = key;
    } else {
      await set(this._page, this._settings, settings);
    }
    this._settings = settings;
    return this._page;
  }

  /**
   * Close what a test has opened, and put the page in order.
   *
   * JupyterLab restores what was open when it is loaded again, some of it late: the page is given
   * up then.
   */
  async reset({ waitForApplication }: IPageOptions): Promise<void> {
    const page = this._page!;
    if (this._loadedAgain) {
      await this.close();
      return;
    }
    const search = page.getByRole('textbox', { name: 'Search all' });
    if (await search.isVisible()) {
      await search.fill('');
    }
    await page.evaluate(async () => {
      const { commands, shell } = window.jupyterapp;
      const helpers = await window.galata.getPlugin(
        '@jupyterlab/galata-extension:helpers'
      );
      helpers!.dialogs.forEach(dialog => dialog.dispose());
      helpers!.notifications.dismiss();
      if (document.body.dataset.jpThemeName !== 'JupyterLab Light') {
        const theme = 'JupyterLab Light';
        await commands.execute('apputils:change-theme', { theme });
      }
      await commands.execute('filebrowser:go-to-path', { path: '/' });
      shell.activateById('filebrowser');
      (shell as unknown as { collapseRight(): void }).collapseRight();
      for (const widget of Array.from(shell.widgets('main'))) {
        widget.dispose();
      }
    });
    await page.mouse.move(0, 0);
    // The file browser may tell only now that the folder of the test is gone.
    const gone = page.getByRole('dialog', { name: /^Directory not found/ });
    const closed = gone
      .getByRole('button', { name: 'Close' })
      .click()
      .catch(() => undefined); // it was never told
    await Promise.race([waitForApplication(page, page), closed]);
    await waitForApplication(page, page);
  }

  /** Have the next test begin with a new page. */
  async close(): Promise<void> {
    await this._page?.context().close();
    this._page = null;
  }

  private _key = '';
  private _loadedAgain = false;
  private _page: IJupyterLabPageFixture | null = null;
  private _settings: Settings = {};
}

/**
 * Have notifications stay until they are dismissed.
 *
 * They go after seconds, and a machine may take as long to press a button of theirs.
 */
function keepNotifications(): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(
    '.Toastify__progress-bar { animation-play-state: paused !important; }'
  );
  document.adoptedStyleSheets.push(sheet);
}

/** Change settings, as a person does. */
async function set(page: Page, from: Settings, to: Settings): Promise<void> {
  const changed = Object.keys({ ...from, ...to })
    .map(id => [id, JSON.stringify(to[id] ?? {})])
    .filter(([id, raw]) => JSON.stringify(from[id] ?? {}) !== raw);
  await page.evaluate(async changed => {
    const id = '@jupyterlab/apputils-extension:settings';
    const registry = await window.galata.getPlugin(id);
    for (const [id, raw] of changed) {
      await registry!.upload(id, raw);
    }
  }, changed);
}

/** End the kernels of the notebooks. */
export async function endKernels(
  request: APIRequestContext,
  baseURL: string
): Promise<void> {
  const answer = await request.get(`${baseURL}/api/sessions`);
  for (const { id } of (await answer.json()) as { id: string }[]) {
    await request.delete(`${baseURL}/api/sessions/${id}`);
  }
}
