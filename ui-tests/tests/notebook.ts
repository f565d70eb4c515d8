/** A notebook that a person has open, and an agent that works in it. */
import { expect } from '@jupyterlab/galata';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { APIRequestContext, Page } from '@playwright/test';

const API = 'api/agent-exec';

/** Pixels that a wheel scrolls at once. */
const STEP = 200;

/** What a test needs to know of a cell. */
export interface ICell {
  id: string;
  source: string;
  text: string;
  execution_count: number | null;
  state: string;
}

/** What a test needs to know of an execution. */
export interface IExecution {
  id: string;
  status: string;
  reason: string | null;
  text: string;
  execution_count: number | null;
  duration: number | null;
  waiting_for: { who: string } | null;
  kernel: { restarted: boolean; reason: string | null } | null;
  document: { path: string; status: string; via: string } | null;
}

/** A cell as its file has it. */
export function codeCell(id: string, source: string) {
  return {
    cell_type: 'code',
    id,
    source,
    metadata: {},
    outputs: [],
    execution_count: null
  };
}

/** The files of the server. */
export class Files {
  constructor(
    private readonly _request: APIRequestContext,
    private readonly _baseURL: string
  ) {}

  /** Write a notebook with these cells. */
  async write(path: string, cells: object[]): Promise<void> {
    const content = {
      cells,
      metadata: {
        kernelspec: { name: 'python3', display_name: 'Python 3 (ipykernel)' },
        language_info: { name: 'python' }
      },
      nbformat: 4,
      nbformat_minor: 5
    };
    const response = await this._request.put(this._url(path), {
      data: { type: 'notebook', format: 'json', content }
    });
    expect(response.ok(), await response.text()).toBe(true);
  }

  /** Write an empty file, for which code in a kernel waits. */
  async touch(path: string): Promise<void> {
    const response = await this._request.put(this._url(path), {
      data: { type: 'file', format: 'text', content: '' }
    });
    expect(response.ok(), await response.text()).toBe(true);
  }

  /** The sources of a notebook's cells, with their stream outputs. */
  async cells(path: string): Promise<{ source: string; text: string }[]> {
    type Text = string | string[];
    let cells: { source: Text; outputs?: { text?: Text }[] }[] = [];
    // As a file: Jupyter puts a notebook aside that it reads while it writes it.
    const url = `${this._url(path)}?type=file&format=text`;
    await expect(async () => {
      const response = await this._request.get(url);
      expect(response.ok(), await response.text()).toBe(true);
      cells = JSON.parse((await response.json()).content).cells;
    }).toPass({ timeout: 60_000 });
    const join = (text: Text) => [text].flat().join('');
    return cells.map(({ source, outputs = [] }) => ({
      source: join(source),
      text: outputs.map(({ text = '' }) => join(text)).join('')
    }));
  }

  private _url(path: string): string {
    return `${this._baseURL}/api/contents/${path}`;
  }
}

/** An agent in a person's notebook. */
export class NotebookAgent {
  private constructor(
    private readonly _request: APIRequestContext,
    private readonly _baseURL: string,
    private readonly _sessionId: string
  ) {}

  /** Open a session in a notebook. */
  static async open(
    request: APIRequestContext,
    baseURL: string,
    path: string,
    name = 'analyst'
  ): Promise<NotebookAgent> {
    const response = await request.post(`${baseURL}/${API}/sessions`, {
      data: { agent: { name }, target: { kind: 'notebook', path } },
      timeout: 60_000
    });
    expect(response.status(), await response.text()).toBe(201);
    const { id } = await response.json();
    return new NotebookAgent(request, baseURL, id);
  }

  /** Run a source in a cell, wait for its end, and tell by which way it went. */
  async run(
    source: string,
    placement: 'end' | { before: string } = 'end'
  ): Promise<string> {
    const { id, status } = await this.begin(source, placement, 60);
    expect(status).toBe('ok');
    return this.via(id);
  }

  /** Run a source in a cell. */
  async begin(
    source: string,
    placement: 'end' | { before: string } = 'end',
    wait = 0
  ): Promise<IExecution> {
    return this.execute({ source, placement, wait });
  }

  /** Ask for an execution with this body. */
  async execute(data: object): Promise<IExecution> {
    const response = await this._request.post(`${this._session}/executions`, {
      data,
      timeout: 90_000
    });
    expect(response.ok(), await response.text()).toBe(true);
    return response.json();
  }

  /** An execution as it stands, or, if it is waited for, has ended. */
  async execution(id: string, wait = 0): Promise<IExecution> {
    const url = `${this._baseURL}/${API}/executions/${id}?wait=${wait}`;
    return (await this._request.get(url, { timeout: 90_000 })).json();
  }

  /** Wait until the session knows that its kernel is at work. */
  async atWork(): Promise<void> {
    await expect
      .poll(async () => {
        const response = await this._request.get(this._session);
        return (await response.json()).kernel.execution_state;
      })
      .toBe('busy');
  }

  /** Where the session's notebook is. */
  async path(): Promise<string> {
    return (await (await this._request.get(this._session)).json()).path;
  }

  /** The entries of the session's journal. */
  async journal(): Promise<{ type: string }[]> {
    const response = await this._request.get(`${this._session}/journal`);
    const lines = (await response.text()).trim().split('\n');
    return lines.map(line => JSON.parse(line).entry);
  }

  /** Wait until an execution's cell is written, and tell by which way. */
  async via(id: string): Promise<string> {
    const url = `${this._baseURL}/${API}/executions/${id}?wait=60`;
    let via = '';
    await expect
      .poll(async () => {
        const response = await this._request.get(url, { timeout: 90_000 });
        const { document } = await response.json();
        via = document?.via;
        return document;
      })
      .toMatchObject({ status: expect.stringMatching(/^(written|unsaved)$/) });
    return via;
  }

  /** Make edits. */
  async edit(path: string, edits: object[]): Promise<string> {
    const name = encodeURIComponent(path);
    const url = `${this._baseURL}/${API}/notebooks/${name}/cells`;
    const response = await this._request.patch(url, {
      data: { session_id: this._sessionId, edits }
    });
    expect(response.status(), await response.text()).toBe(200);
    return (await response.json()).via;
  }

  /** Close the session. */
  async close(): Promise<void> {
    const url = `${this._session}/close`;
    await this._request.post(url, { data: {}, timeout: 60_000 });
  }

  private get _session(): string {
    return `${this._baseURL}/${API}/sessions/${this._sessionId}`;
  }
}

/** The notebook of a page, as it is shown there. */
export class OpenNotebook {
  constructor(
    readonly page: Page,
    readonly path: string
  ) {}

  /** Open a notebook, as the file browser does, and wait until it is in front. */
  static async open(page: Page, path: string): Promise<OpenNotebook> {
    await page.evaluate(async path => {
      const { commands, restored } = window.jupyterapp;
      await restored;
      await commands.execute('docmanager:open', { path });
    }, path);
    await page.waitForFunction(path => {
      const { currentWidget } = window.jupyterapp.shell;
      return (currentWidget as NotebookPanel | null)?.context?.path === path;
    }, path);
    return new OpenNotebook(page, path);
  }

  /** Wait until the page is connected with the notebook's kernel. */
  async connected(): Promise<void> {
    await this.page.waitForFunction(() => {
      const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
      const { kernel } = panel.sessionContext.session ?? {};
      return kernel?.status === 'idle' || kernel?.status === 'busy';
    });
  }

  /** Wait until the notebook is open with its kernel, as the server knows. */
  async ready(request: APIRequestContext, baseURL: string, tabs = 1) {
    await expect
      .poll(async () => {
        const response = await request.get(`${baseURL}/${API}/notebooks`);
        const { notebooks } = await response.json();
        const found = notebooks.find(
          (each: { path: string }) => each.path === this.path
        );
        return found?.kernel && found.tabs;
      })
      .toBe(tabs);
  }

  /** The cells of the model. */
  cells(): Promise<ICell[]> {
    return this.page.evaluate(path => {
      const all = Array.from(window.jupyterapp.shell.widgets('main'));
      const panel = (all as NotebookPanel[]).find(
        each => each.context?.path === path
      );
      if (!panel) {
        throw new Error(`${path} is not open`);
      }
      return Array.from(panel.context.model.cells, model => {
        const cell = model.sharedModel;
        const { outputs = [], execution_count = null } = cell.toJSON() as {
          outputs?: { text?: string }[];
          execution_count?: number | null;
        };
        return {
          id: cell.getId(),
          source: cell.getSource(),
          text: outputs.map(({ text }) => text ?? '').join(''),
          execution_count,
          state: (model as ICodeCellModel).executionState ?? ''
        };
      });
    }, this.path);
  }

  /** The same notebook under another path. */
  at(path: string): OpenNotebook {
    return new OpenNotebook(this.page, path);
  }

  /** Wait until the last output of the last cell ends with a text. */
  async last(text: string): Promise<void> {
    await this.page.waitForFunction(
      text => {
        const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
        const { cells } = panel.context.model;
        const { outputs } = cells.get(cells.length - 1) as ICodeCellModel;
        const last = outputs.length && outputs.get(outputs.length - 1).toJSON();
        return last && String(last.text).endsWith(text);
      },
      text,
      { polling: 20 }
    );
  }

  /** Whether something is unsaved. */
  dirty(): Promise<boolean> {
    return this.page.evaluate(() => {
      const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
      return panel.context.model.dirty;
    });
  }

  /** Wait until the page knows the kernel, of which it notes something. */
  async knowsKernel(): Promise<void> {
    await this.page.evaluate(async () => {
      const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
      const kernel = panel.sessionContext.session?.kernel;
      await kernel?.info;
      await kernel?.spec;
    });
  }

  /** Save as a person does, and wait until it is done. */
  async save(): Promise<void> {
    const saving = await this.page.evaluateHandle(() => {
      const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
      const done = new Promise<void>(resolve => {
        panel.context.saveState.connect((_, state) => {
          if (state === 'completed') {
            resolve();
          }
        });
      });
      return { done };
    });
    await this.page.keyboard.press('Control+s');
    // Without edits nothing else tells of it.
    await saving.evaluate(({ done }) => done);
    await expect.poll(() => this.dirty()).toBe(false);
  }

  /**
   * Scroll down as a person does, until a cell is out of sight or at the top,
   * and the view is at rest.
   *
   * With a command of JupyterLab it would be otherwise: for some seconds it
   * goes back to what stands in the same place of the list, whatever that is.
   */
  async scrollDown(index: number): Promise<void> {
    await this.page.locator('.jp-WindowedPanel-outer').hover();
    let now = await this.inSight();
    while (now.index < index) {
      await this.page.mouse.wheel(0, STEP);
      await this._drawn();
      // Beyond the cells that JupyterLab has drawn so far there is nothing.
      await expect(async () => {
        now = await this.inSight();
      }).toPass();
    }
    await this.atRest();
  }

  /** Wait until the view is at rest, and tell what is in sight then. */
  async atRest(): Promise<{ id: string; index: number; top: number }> {
    let now = await this.inSight();
    let before;
    do {
      before = now;
      await this._drawn(30);
      now = await this.inSight();
    } while (now.id !== before.id || now.top !== before.top);
    return now;
  }

  /** Go to a cell, as a person does. */
  async activate(index: number): Promise<void> {
    await this.page.evaluate(async index => {
      const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
      panel.content.activeCellIndex = index;
      await panel.content.scrollToCell(panel.content.widgets[index], 'end');
    }, index);
  }

  /** The first cell in sight, and how far from the top it stands. */
  inSight(): Promise<{ id: string; index: number; top: number }> {
    return this.page.evaluate(() => {
      const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
      const { content } = panel;
      const top = content.outerNode.getBoundingClientRect().top;
      for (const [index, cell] of content.widgets.entries()) {
        const { bottom, top: from } = cell.node.getBoundingClientRect();
        if (cell.isAttached && bottom > top + 5) {
          return { id: cell.model.id, index, top: Math.round(from - top) };
        }
      }
      throw new Error('No cell is in sight');
    });
  }

  /** Wait until the page was drawn some times. */
  private async _drawn(times = 1): Promise<void> {
    await this.page.evaluate(async times => {
      for (let n = 0; n < times; n++) {
        await new Promise(resolve => requestAnimationFrame(resolve));
      }
    }, times);
  }
}
