/** One page for the tests of a file: JupyterLab takes seconds to start. */
import { galata } from '@jupyterlab/galata';
import type {
  IJupyterLabPage,
  IJupyterLabPageFixture
} from '@jupyterlab/galata';
import type { APIRequestContext, Browser, Page } from '@playwright/test';

/** Waits until JupyterLab shows its launcher. */
type Wait = (page: Page, helpers: IJupyterLabPage) => Promise<void>;

/** The page of the file whose tests run. */
export class SamePage {
  constructor(private readonly _browser: Browser) {}

  /** The page as the last test has left it, or a new one. */
  async open(
    file: string,
    baseURL: string,
    wait: Wait
  ): Promise<IJupyterLabPageFixture> {
    if (this._page && this._file === file) {
      return this._page;
    }
    await this.close();
    this._file = file;
    const context = await this._browser.newContext();
    const page = await galata.initTestPage(
      '/lab',
      false,
      baseURL,
      true,
      galata.DEFAULT_SETTINGS,
      true,
      true,
      await context.newPage(),
      null,
      null,
      '',
      wait,
      null
    );
    await page.goto('?reset');
    page.on('load', () => (this._loadedAgain = true));
    this._loadedAgain = false;
    this._page = page;
    return page;
  }

  /**
   * Close what a test has opened, and end the kernels that it has left.
   *
   * JupyterLab restores what was open when it is loaded again, some of it late: the page is given
   * up then.
   */
  async reset(
    request: APIRequestContext,
    baseURL: string,
    wait: Wait
  ): Promise<void> {
    const page = this._page!;
    if (this._loadedAgain) {
      await this.close();
      return;
    }
    await page.evaluate(async () => {
      const { commands, shell } = window.jupyterapp;
      for (const widget of Array.from(shell.widgets('main'))) {
        widget.dispose();
      }
      await commands.execute('filebrowser:go-to-path', { path: '/' });
      (shell as unknown as { collapseRight(): void }).collapseRight();
    });
    for (const { id } of await sessions(request, baseURL)) {
      await request.delete(`${baseURL}/api/sessions/${id}`);
    }
    await page.mouse.move(0, 0);
    await wait(page, page);
  }

  /** Have the next test begin with a new page. */
  async close(): Promise<void> {
    await this._page?.context().close();
    this._page = null;
  }

  private _file = '';
  private _loadedAgain = false;
  private _page: IJupyterLabPageFixture | null = null;
}

/** The notebooks' kernels that run. */
async function sessions(
  request: APIRequestContext,
  baseURL: string
): Promise<{ id: string }[]> {
  return (await request.get(`${baseURL}/api/sessions`)).json();
}
