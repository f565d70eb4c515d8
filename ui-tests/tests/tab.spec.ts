/** An agent in a notebook that a person has open, without collaboration. */
import { expect, galata } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Page } from '@playwright/test';
import { codeCell, Files, NotebookAgent, OpenNotebook } from './notebook';
import { started } from './panel';

/** An open notebook, the file behind it, and an agent. */
interface ILive {
  files: Files;
  path: string;
  /** Open a notebook with these cells. */
  open(cells: object[]): Promise<OpenNotebook>;
  /** Open the same notebook in another page of the browser. */
  openAgain(): Promise<OpenNotebook>;
  attach(): Promise<NotebookAgent>;
  /** Let `LINES` go on. */
  goOn(): Promise<void>;
}

const test = started.extend<{ live: ILive }>({
  live: async ({ page, request, baseURL, tmpPath }, use) => {
    const files = new Files(request, baseURL!);
    const path = `${tmpPath}/live.ipynb`;
    const pages: Page[] = [];
    const agents: NotebookAgent[] = [];
    await use({
      files,
      path,
      open: async cells => {
        await files.write(path, cells);
        await page.notebook.openByPath(path);
        const notebook = new OpenNotebook(page, path);
        await notebook.ready(request, baseURL!);
        return notebook;
      },
      openAgain: async () => {
        const other = await page.context().newPage();
        pages.push(other);
        await other.goto(`${baseURL}/lab/workspaces/other/tree/${path}`);
        const notebook = new OpenNotebook(other, path);
        await notebook.ready(request, baseURL!, 2);
        return notebook;
      },
      attach: async () => {
        const agent = await NotebookAgent.open(request, baseURL!, path);
        agents.push(agent);
        return agent;
      },
      goOn: () => files.touch(`${tmpPath}/go`)
    });
    await Promise.all(agents.map(agent => agent.close()));
    await Promise.all(pages.map(other => other.close()));
  }
});

/** Type at the end of a cell, as a person does, all in one for undo. */
async function type(notebook: OpenNotebook, index: number, text: string) {
  const cell = notebook.page.locator(
    `.jp-Cell[data-windowed-list-index="${index}"] .cm-content`
  );
  await cell.click();
  await notebook.page.keyboard.press('End');
  await notebook.page.keyboard.insertText(text);
}

/** Delete a cell that is shown, with a click on its prompt before. */
async function remove(notebook: OpenNotebook, index: number) {
  await notebook.activate(index);
  const { page } = notebook;
  await page.locator('.jp-Cell.jp-mod-active .jp-InputPrompt').click();
  await page.evaluate(async index => {
    const { commands, shell } = window.jupyterapp;
    const { content } = shell.currentWidget as NotebookPanel;
    if (content.activeCellIndex !== index) {
      throw new Error(`Cell ${content.activeCellIndex} is active.`);
    }
    await commands.execute('notebook:delete-cell');
  }, index);
}

test('unsaved edits stay beside the cell of an agent, and both are saved', async ({
  live,
  page
}) => {
  const notebook = await live.open([codeCell('a', 'x = 1'), codeCell('b', '')]);
  const agent = await live.attach();
  await type(notebook, 0, '000');
  expect(await agent.run('print(6 * 7)')).toBe('tab');
  await page.keyboard.type('  # mine');
  await expect
    .poll(() => notebook.cells())
    .toMatchObject([
      { source: 'x = 1000  # mine' },
      { source: '' },
      { source: 'print(6 * 7)', text: '42\n', state: 'idle' }
    ]);
  await expect(page.getByText('42', { exact: true })).toBeVisible();
  expect((await live.files.cells(live.path))[0].source).toBe('x = 1');
  await notebook.save();
  expect(await live.files.cells(live.path)).toEqual([
    { source: 'x = 1000  # mine', text: '' },
    { source: '', text: '' },
    { source: 'print(6 * 7)', text: '42\n' }
  ]);
});

test('undo takes back what the person did, and nothing of the agent', async ({
  live,
  page
}) => {
  const notebook = await live.open([codeCell('a', 'x = 1'), codeCell('b', '')]);
  const agent = await live.attach();
  await type(notebook, 0, '000');
  await agent.run('print(1)', { before: 'b' });
  expect(
    await agent.edit(live.path, [
      { op: 'replace', cell_id: 'b', source: 'y = 2' },
      {
        op: 'insert',
        cell_type: 'markdown',
        source: '# By the agent',
        after: 'b'
      }
    ])
  ).toBe('tab');
  await page.keyboard.press('Control+z');
  const sources = async () =>
    (await notebook.cells()).map(({ source }) => source);
  const agents = ['print(1)', 'y = 2', '# By the agent'];
  await expect.poll(sources).toEqual(['x = 1', ...agents]);
  await page.keyboard.press('Control+z');
  await page.keyboard.press('Escape');
  await page.keyboard.press('z');
  await expect.poll(sources).toEqual(['x = 1', ...agents]);
});

test('of two pages one runs the cell, and both have it once', async ({
  live,
  page
}) => {
  const first = await live.open([codeCell('a', 'x = 1')]);
  const second = await live.openAgain();
  await second.page.locator('.jp-Notebook').click();
  const agent = await live.attach();
  expect(await agent.run('print("once")')).toBe('tab');
  for (const notebook of [first, second]) {
    await expect
      .poll(async () => (await notebook.cells()).map(({ text }) => text))
      .toEqual(['', 'once\n']);
  }
  expect(await live.files.cells(live.path)).toHaveLength(2);
  await expect(page.locator('.jp-Dialog')).toHaveCount(0);
});

test('with unsaved edits in the page that is used, nothing is saved for the person', async ({
  live
}) => {
  const first = await live.open([codeCell('a', 'x = 1')]);
  const second = await live.openAgain();
  await type(second, 0, '0');
  const agent = await live.attach();
  await agent.run('print("here")');
  expect((await second.cells()).map(({ source }) => source)).toEqual([
    'x = 10',
    'print("here")'
  ]);
  expect(await second.dirty()).toBe(true);
  expect(await first.cells()).toHaveLength(1);
  expect(await live.files.cells(live.path)).toHaveLength(1);
});

/** Load a page again, with its notebook, without saving. */
async function reload({ page, path }: OpenNotebook): Promise<void> {
  // Not `page.reload`, which waits for a page without an open notebook.
  await Promise.all([
    page.waitForEvent('load'),
    page.evaluate(() => window.location.reload())
  ]);
  await page.waitForFunction(() => 'jupyterapp' in window);
  await page.evaluate(async path => {
    await window.jupyterapp.restored;
    await window.jupyterapp.commands.execute('docmanager:open', { path });
  }, path);
}

/** Prints lines, and in the middle waits until it may go on. */
const LINES =
  'import os, time\nfor i in range(60):\n    while i > 9 and not os.path.exists("go"):\n        time.sleep(0.05)\n    print("line", i, flush=True)\n    time.sleep(0.05)';

test('undo brings a deleted cell back, and it gets all that its code prints', async ({
  live,
  page
}) => {
  const notebook = await live.open([codeCell('a', 'x = 1')]);
  const agent = await live.attach();
  const { id } = await agent.begin(
    'import os, time\nn = 0\nwhile not os.path.exists("go"):\n    n += 1\n    print("line", n, flush=True)\n    time.sleep(0.05)\nprint("the", "end")'
  );
  const status = async () => (await agent.execution(id)).document?.status;
  await expect(page.getByText('line 5')).toBeVisible();
  await remove(notebook, 1);
  await expect.poll(status).toBe('not_written');
  await page.keyboard.press('z');
  await expect.poll(() => notebook.cells()).toHaveLength(2);
  await live.goOn();
  await expect(page.getByText('the end')).toBeVisible();
  await expect.poll(status).toBe('written');
});

test('undo brings a deleted cell back without saying that it runs', async ({
  live,
  page
}) => {
  const notebook = await live.open([codeCell('a', 'x = 1')]);
  const agent = await live.attach();
  const { id } = await agent.begin(LINES);
  await expect(page.getByText('line 5')).toBeVisible();
  await remove(notebook, 1);
  await expect.poll(() => notebook.cells()).toHaveLength(1);
  await live.goOn();
  expect((await agent.execution(id, 60)).status).toBe('ok');
  await page.keyboard.press('z');
  await expect
    .poll(async () => (await notebook.cells()).map(({ state }) => state))
    .toEqual(['idle', 'idle']);
  await expect(page.getByText('[*]:')).toHaveCount(0);
});

test('a page that is loaded again in the middle shows the cell once, and all of it', async ({
  live,
  page,
  request,
  baseURL
}) => {
  const notebook = await live.open([codeCell('a', 'x = 1')]);
  const agent = await live.attach();
  const { id } = await agent.begin(LINES);
  await expect(page.getByText('line 5')).toBeVisible();
  await reload(notebook);
  await notebook.ready(request, baseURL!);
  await live.goOn();
  await agent.via(id);
  const lines = Array.from({ length: 60 }, (_, i) => `line ${i}\n`).join('');
  await expect
    .poll(async () => (await notebook.cells()).map(({ text }) => text))
    .toEqual(['', lines]);
  await notebook.save();
  expect((await live.files.cells(live.path)).map(({ text }) => text)).toEqual([
    '',
    lines
  ]);
});

for (const windowingMode of ['full', 'contentVisibility']) {
  test.describe(`in windowing mode ${windowingMode}`, () => {
    test.use({
      mockSettings: {
        ...galata.DEFAULT_SETTINGS,
        '@jupyterlab/notebook-extension:tracker': { windowingMode }
      }
    });

    test('what is in sight stays where it is, and what is not is complete', async ({
      live,
      page
    }) => {
      const many = Array.from({ length: 200 }, (_, i) =>
        codeCell(`c${i}`, `a = ${i}\nb = ${i}`)
      );
      const notebook = await live.open(many);
      const agent = await live.attach();
      await notebook.scrollDown(100);
      const before = await notebook.inSight();
      await agent.run('for i in range(3000):\n    print("line", i)');
      await agent.run('print("above")', { before: 'c0' });
      const after = await notebook.atRest();
      expect(after.id).toBe(before.id);
      expect(Math.abs(after.top - before.top)).toBeLessThan(5);
      const cells = await notebook.cells();
      expect(cells).toHaveLength(202);
      expect(cells[0].text).toBe('above\n');
      expect(cells[201].text.split('\n')).toHaveLength(3001);
      await expect(async () => {
        await notebook.activate(201);
        await expect(page.getByText('line 2999')).toBeVisible({
          timeout: 1000
        });
      }).toPass();
    });

    test('who looks at the end of the notebook stays there', async ({
      live
    }) => {
      const cells = Array.from({ length: 60 }, (_, i) =>
        codeCell(`c${i}`, `a = ${i}\nb = ${i}`)
      );
      const notebook = await live.open(cells);
      const agent = await live.attach();
      await notebook.scrollDown(55);
      await expect(notebook.page.getByText('a = 59')).toBeInViewport();
      const before = await notebook.inSight();
      await agent.run('for i in range(100):\n    print("line", i)');
      const after = await notebook.atRest();
      expect(after.id).toBe(before.id);
      expect(Math.abs(after.top - before.top)).toBeLessThan(5);
    });
  });
}
