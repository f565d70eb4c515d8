/** An agent in a notebook that two people have open together. */
import { expect } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator, Page } from '@playwright/test';
import { AskingAgent, Question, Server } from './approval';
import { codeCell, Files, NotebookAgent, OpenNotebook } from './notebook';
import { started } from './panel';
import { ProposingAgent, ShownProposals } from './proposing';

/** A notebook in two browsers, the file behind it, and an agent. */
interface IShared {
  files: Files;
  path: string;
  /** Write the notebook, and open it in both. */
  open(cells: object[]): Promise<[OpenNotebook, OpenNotebook]>;
  /** Open it as it is, with so many cells, in both. */
  openAgain(count: number): Promise<[OpenNotebook, OpenNotebook]>;
  attach(): Promise<NotebookAgent>;
}

const test = started.extend<{ shared: IShared }>({
  shared: async ({ page, browser, request, baseURL, tmpPath }, use) => {
    const files = new Files(request, baseURL!);
    const path = `${tmpPath}/shared.ipynb`;
    const context = await browser.newContext();
    const agents: NotebookAgent[] = [];
    const open = async (count: number) => {
      const here = await OpenNotebook.open(page, path);
      const other = await context.newPage();
      await other.goto(`${baseURL}/lab/workspaces/other/tree/${path}`);
      const notebooks: [OpenNotebook, OpenNotebook] = [
        here,
        new OpenNotebook(other, path)
      ];
      for (const notebook of notebooks) {
        await expect.poll(() => sources(notebook)).toHaveLength(count);
        expect(await collaborative(notebook)).toBe(true);
      }
      return notebooks;
    };
    await use({
      files,
      path,
      open: async cells => {
        await files.write(path, cells);
        const notebooks = await open(cells.length);
        for (const notebook of notebooks) {
          await notebook.connected();
        }
        return notebooks;
      },
      openAgain: open,
      attach: async () => {
        const agent = await NotebookAgent.open(request, baseURL!, path);
        agents.push(agent);
        return agent;
      }
    });
    await Promise.all(agents.map(agent => agent.close()));
    await context.close();
  }
});

/** Whether the page has the notebook open with others. */
function collaborative(notebook: OpenNotebook): Promise<boolean | undefined> {
  return notebook.page.evaluate(() => {
    const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
    return panel.context.model.collaborative;
  });
}

/** The sources of a notebook's cells; none while it is not open yet. */
async function sources(notebook: OpenNotebook): Promise<string[]> {
  try {
    return (await notebook.cells()).map(({ source }) => source);
  } catch {
    return [];
  }
}

/** A cell as it is shown. */
function shown(page: Page, index: number): Locator {
  return page.locator(
    `.jp-Notebook .jp-Cell[data-windowed-list-index="${index}"]`
  );
}

/** What a cell's outputs show, without what is only for layout. */
function outputs(page: Page, index: number): Locator {
  return shown(page, index).locator('.jp-OutputArea-output');
}

/** Waits in the kernel until the server has a file. */
const wait = (name: string) =>
  `import os, time\nwhile not os.path.exists("${name}"):\n    time.sleep(0.05)\n`;

test('what an agent proposes is seen by both, and run by neither before it is approved', async ({
  request,
  baseURL,
  shared
}) => {
  const [here, there] = await shared.open([codeCell('mine', 'x = 1')]);
  const server = new Server(request, baseURL!);
  await server.setPolicy({ notebook: 'always' });
  const session = await server.send<{ id: string }>('post', 'sessions', {
    agent: { name: 'analyst' },
    target: { kind: 'notebook', path: shared.path }
  });
  const agent = new AskingAgent(server, session.id);
  try {
    const asked = await agent.ask('print("together", x)');
    for (const { page } of [here, there]) {
      await expect(Question.in(shown(page, 0)).node).toBeVisible();
      await expect(page.locator('.jp-AgentExecProposal')).toHaveCount(1);
    }
    await there.page.evaluate(() =>
      window.jupyterapp.commands.execute('notebook:run-all-cells')
    );
    expect(await sources(here)).toEqual(['x = 1']);
    expect(await sources(there)).toEqual(['x = 1']);
    expect((await agent.read(asked)).status).toBe('awaiting_approval');
    await Question.in(shown(there.page, 0)).answer('Approve');
    expect((await agent.read(asked, 30)).text).toContain('together 1');
    const after = ['x = 1', 'print("together", x)'];
    await expect.poll(() => sources(here)).toEqual(after);
    await expect(Question.in(here.page).node).toBeHidden();
    const proposed = await agent.ask('x = 0', { placement: { cell: 'mine' } });
    const question = Question.in(shown(here.page, 0));
    await question.button('Show what differs').click();
    await expect(question.node.getByRole('deletion')).toHaveText('x = 1');
    expect(await sources(there)).toEqual(after);
    await question.answer('Reject…');
    await expect(here.page.getByRole('dialog')).toBeVisible();
    await here.page.keyboard.press('Enter');
    expect((await agent.read(proposed, 30)).status).toBe('rejected');
    expect(await sources(there)).toEqual(after);
  } finally {
    await agent.close();
    await server.setPolicy({ notebook: 'none' });
  }
});

test('two people see an agent’s cell appear once, and grow', async ({
  shared
}) => {
  const both = await shared.open([codeCell('mine', 'x = 1')]);
  const agent = await shared.attach();
  const { id } = await agent.begin(
    `print("one", flush=True)\n${wait('go.ipynb')}print("two")`
  );
  for (const { page } of both) {
    await expect(outputs(page, 1)).toHaveText('one');
    await expect(shown(page, 1)).toContainText('[*]');
  }
  // One of them types meanwhile.
  const { page } = both[1];
  await shown(page, 0).locator('.cm-content').click();
  await page.keyboard.press('End');
  await page.keyboard.type(' + 1');
  await shared.files.write(shared.path.replace('shared', 'go'), []);
  await page.keyboard.type(' + 2');
  expect(await agent.via(id)).toBe('collaboration');
  for (const notebook of both) {
    await expect(outputs(notebook.page, 1)).toHaveText('one\ntwo');
    await expect(shown(notebook.page, 1)).toContainText('[1]');
    await expect
      .poll(async () => (await sources(notebook))[0])
      .toBe('x = 1 + 1 + 2');
    expect(await notebook.cells()).toHaveLength(2);
  }
  await expect(shown(page, 0).locator('.cm-focused')).toBeVisible();
  await expect
    .poll(() => shared.files.cells(shared.path))
    .toMatchObject([
      { source: 'x = 1 + 1 + 2', text: '' },
      { text: 'one\ntwo\n' }
    ]);
});

test('what a person undoes is not the agent’s', async ({ shared }) => {
  const both = await shared.open([codeCell('mine', 'x = 1')]);
  const [{ page }] = both;
  await shown(page, 0).locator('.cm-content').click();
  await page.keyboard.press('End');
  // At once: what is typed more slowly than Yjs gathers is undone in several steps.
  await page.keyboard.insertText(' + 1');
  const agent = await shared.attach();
  expect(await agent.run('print("kept")')).toBe('collaboration');
  await shown(page, 0).locator('.cm-content').click();
  await page.keyboard.press('Control+z');
  await expect.poll(async () => (await sources(both[0]))[0]).toBe('x = 1');
  await page.keyboard.press('Escape');
  for (let undone = 0; undone < 3; undone++) {
    await page.keyboard.press('z');
  }
  for (const notebook of both) {
    await expect
      .poll(() => sources(notebook))
      .toEqual(['x = 1', 'print("kept")']);
    await expect(outputs(notebook.page, 1)).toHaveText('kept');
  }
});

test('lines that are written over, displays that are updated, and what is cleared look as from a person’s cell', async ({
  shared
}) => {
  const both = await shared.open([codeCell('mine', 'x = 1')]);
  const agent = await shared.attach();
  // Each step is a write of its own: changes are gathered for a tenth of a second.
  await agent.run(`import sys, time
from IPython.display import clear_output, display

def step():
    sys.stdout.flush()
    time.sleep(0.3)

print("gone"); step()
clear_output(); step()
shown = display("first", display_id=True); step()
for done in (5, 50, 100):
    print(f"\\r{done} %", end=""); step()
shown.update("second"); step()
print("\\rdone  "); step()
print("oh", file=sys.stderr); step()
print("more"); step()
print("and more")`);
  for (const notebook of both) {
    await expect(outputs(notebook.page, 1)).toHaveText([
      "'second'",
      'done  ',
      'oh',
      'more\nand more'
    ]);
    const [, { text }] = await notebook.cells();
    expect(text).toBe('done  \noh\nmore\nand more\n');
  }
});

test('a notebook that is opened while an agent works has its cell once', async ({
  shared
}) => {
  await shared.files.write(shared.path, [codeCell('mine', 'x = 1')]);
  const agent = await shared.attach();
  const { id } = await agent.begin(
    `print("one", flush=True)\n${wait('go.ipynb')}print("two", flush=True)\n` +
      `${wait('end.ipynb')}print("three")`
  );
  await expect
    .poll(async () => (await shared.files.cells(shared.path)).length)
    .toBe(2);
  const both = await shared.openAgain(2);
  await shared.files.write(shared.path.replace('shared', 'go'), []);
  for (const { page } of both) {
    await expect(outputs(page, 1)).toHaveText('one\ntwo');
  }
  await shared.files.write(shared.path.replace('shared', 'end'), []);
  expect(await agent.via(id)).toBe('collaboration');
  for (const notebook of both) {
    await expect(outputs(notebook.page, 1)).toHaveText('one\ntwo\nthree');
    expect(await notebook.cells()).toHaveLength(2);
  }
  await expect
    .poll(() => shared.files.cells(shared.path))
    .toMatchObject([{ source: 'x = 1' }, { text: 'one\ntwo\nthree\n' }]);
});

test('what an agent proposes is shown to both people, and decided once', async ({
  shared,
  request,
  baseURL
}) => {
  const both = await shared.open([
    codeCell('mine', 'x = 1'),
    codeCell('y', 'y')
  ]);
  const agent = await ProposingAgent.open(request, baseURL!, shared.path);
  await agent.propose(
    { op: 'replace', cell_id: 'mine', source: 'x = 2' },
    { op: 'insert', cell_type: 'code', source: 'new', after: 'mine' }
  );
  const shown = both.map(({ page }) => new ShownProposals(page));
  for (const { edits } of shown) {
    await expect(edits).toHaveCount(2);
  }
  await shown[1].keep(shown[1].edit('Change this cell'));
  for (const { edits } of shown) {
    await expect(edits).toHaveCount(1);
  }
  await shown[0].all('Reject all');
  for (const [index, notebook] of both.entries()) {
    await expect(shown[index].edits).toHaveCount(0);
    await expect.poll(() => sources(notebook)).toEqual(['x = 2', 'y']);
  }
  await agent.close();
});
