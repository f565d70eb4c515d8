/** What of a notebook is trusted, what has run in the page, and what is shown. */
import { expect } from '@jupyterlab/galata';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { APIRequestContext, Locator, Page } from '@playwright/test';
import { Files, NotebookAgent, OpenNotebook } from './notebook';
import { started } from './panel';

const API = 'api/agent-exec';

/** Text as a Python literal. */
export const python = (text: string) => JSON.stringify(text);

/** JavaScript that leaves its name in the page if it runs; without double quotes. */
export function canary(name: string): string {
  return `(window.canaries = window.canaries || []).push('${name}')`;
}

/** The names of what has run in the page since it was loaded. */
export function ran(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const { canaries = [] } = window as { canaries?: string[] };
    return Array.from(new Set(canaries)).sort();
  });
}

/** For each code cell, whether the page trusts it. */
export function trusted({ page }: OpenNotebook): Promise<boolean[]> {
  return page.evaluate(() => {
    const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
    return Array.from(panel.context.model.cells)
      .filter(model => model.type === 'code')
      .map(model => model.trusted);
  });
}

/** The outputs of each code cell, as its model has them. */
export function modelOutputs({ page }: OpenNotebook): Promise<object[][]> {
  return page.evaluate(() => {
    const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
    return Array.from(panel.context.model.cells)
      .filter(model => model.type === 'code')
      .map(model => (model as ICodeCellModel).outputs.toJSON());
  });
}

/** A cell as it is shown. */
export function shown(page: Page, index: number): Locator {
  return page.locator(
    `.jp-NotebookPanel:visible .jp-Cell[data-windowed-list-index="${index}"]`
  );
}

/** The outputs of a cell as they are shown. */
export function outputs(page: Page, index: number): Locator {
  return shown(page, index).locator('.jp-OutputArea-output');
}

/** How the parts of a table look. */
export function dataFrameStyles(output: Locator): Promise<string[]> {
  return output.locator('table').evaluate(table =>
    [table, ...table.querySelectorAll('*')].map(node => {
      const style = getComputedStyle(node);
      const told = ['border', 'padding', 'margin', 'text-align', 'display']
        .concat(['vertical-align', 'font', 'color', 'background-color'])
        .concat(['white-space', 'width', 'height', 'border-collapse'])
        .map(name => `${name}: ${style.getPropertyValue(name)}`);
      return `${node.tagName} ${node.textContent?.trim()} ${told.join('; ')}`;
    })
  );
}

/** Run a cell as the person, and wait until it has ended. */
export async function runAsPerson(
  { page }: OpenNotebook,
  index: number
): Promise<void> {
  await page.waitForFunction(() => {
    const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
    return panel.sessionContext.session?.kernel?.status === 'idle';
  });
  await page.evaluate(async index => {
    const { commands, shell } = window.jupyterapp;
    const { content } = shell.currentWidget as NotebookPanel;
    content.activeCellIndex = index;
    content.deselectAll();
    await commands.execute('notebook:run-cell');
  }, index);
}

/** What an answer tells of an execution's cell. */
export interface IWritten {
  id: string;
  session_id: string;
  via: string;
  outputs: string;
}

/** Run a source as an agent, and wait until its cell is written. */
export async function runAsAgent(
  request: APIRequestContext,
  baseURL: string,
  agent: NotebookAgent,
  source: string
): Promise<IWritten> {
  const { id } = await agent.begin(source, 'end', 60);
  const via = await agent.via(id);
  const response = await request.get(`${baseURL}/${API}/executions/${id}`);
  const { document, session_id } = await response.json();
  return { id, session_id, via, outputs: document.outputs };
}

/** Close the notebook that is open in a page. */
export async function closeNotebook({ page }: OpenNotebook): Promise<void> {
  await page.evaluate(() => window.jupyterapp.shell.currentWidget?.dispose());
}

/** Accept an execution's outputs as the person, over HTTP. */
export async function accept(
  request: APIRequestContext,
  baseURL: string,
  id: string
) {
  const url = `${baseURL}/${API}/executions/${id}/accept`;
  const response = await request.post(url, { data: {} });
  expect(response.status(), await response.text()).toBe(200);
}

/** For each code cell, whether the server trusts it when it reads the file. */
export async function trustedInFile(
  request: APIRequestContext,
  baseURL: string,
  path: string
): Promise<boolean[]> {
  const response = await request.get(`${baseURL}/api/contents/${path}`);
  const { content } = await response.json();
  return content.cells
    .filter((cell: { cell_type: string }) => cell.cell_type === 'code')
    .map((cell: { metadata: { trusted?: boolean } }) => cell.metadata.trusted);
}

/** The decisions in a session's journal, all by a person. */
export async function decisions(
  request: APIRequestContext,
  baseURL: string,
  sessionId: string
): Promise<string[]> {
  const url = `${baseURL}/${API}/sessions/${sessionId}/journal`;
  const lines = (await (await request.get(url)).text()).trim().split('\n');
  const entries = lines
    .map(line => JSON.parse(line).entry)
    .filter(({ type }) => /^outputs_/.test(type));
  for (const { by } of entries) {
    expect(by.kind).toBe('person');
  }
  return entries.map(({ type }) => type);
}

/** A person's notebook, and agents in it. */
export interface IDesk {
  files: Files;
  path: string;
  /** Open the notebook with these cells. */
  open(cells: object[], name?: string): Promise<OpenNotebook>;
  /** Load the page again, and open the notebook from its file. */
  reopen(): Promise<OpenNotebook>;
  attach(): Promise<NotebookAgent>;
  /** Run a source as an agent, and tell what became of its cell. */
  run(agent: NotebookAgent, source: string): Promise<IWritten>;
}

export const test = started.extend<{ desk: IDesk }>({
  desk: async ({ page, request, baseURL, tmpPath }, use) => {
    const files = new Files(request, baseURL!);
    const path = `${tmpPath}/notebook.ipynb`;
    const agents: NotebookAgent[] = [];
    const show = async (path: string) => {
      const notebook = await OpenNotebook.open(page, path);
      await notebook.ready(request, baseURL!);
      return notebook;
    };
    await use({
      files,
      path,
      open: async (cells, name = 'notebook.ipynb') => {
        const path = `${tmpPath}/${name}`;
        await files.write(path, cells);
        const notebook = await show(path);
        await notebook.knowsKernel();
        return notebook;
      },
      reopen: async () => {
        await page.reload();
        return show(path);
      },
      attach: async () => {
        const agent = await NotebookAgent.open(request, baseURL!, path);
        agents.push(agent);
        return agent;
      },
      run: (agent, source) => runAsAgent(request, baseURL!, agent, source)
    });
    await Promise.all(agents.map(agent => agent.close()));
  }
});
