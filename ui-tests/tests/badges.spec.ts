/** What a notebook tells of the agents that work in it. */
import { createHash } from 'node:crypto';
import { expect, galata } from '@jupyterlab/galata';
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator } from '@playwright/test';
import { NotebookAgent, OpenNotebook as Notebook } from './notebook';
import { menuOpened, Panel, started } from './panel';

const WINDOWING = ['contentVisibility', 'full'];

/** What a cell says of an execution that nobody remembers. */
function record(ran: string, given: object = {}) {
  return {
    session_id: 's_00000000000000000000000000',
    execution_id: 'x_00000000000000000000000000',
    seq: 1,
    agent: { name: 'analyst', version: '1.2', model: 'any-model' },
    username: 'ada',
    status: 'ok',
    accepted_at: '2026-01-02T03:04:05.000Z',
    started_at: '2026-01-02T03:04:05.000Z',
    finished_at: '2026-01-02T03:04:06.500Z',
    source_sha256: createHash('sha256').update(ran).digest('hex'),
    outputs: 'inert',
    ...given
  };
}

function codeCell(id: string, source: string, agent_exec?: object) {
  return {
    cell_type: 'code',
    id,
    source,
    metadata: agent_exec ? { agent_exec } : {},
    execution_count: 1,
    outputs: [{ output_type: 'stream', name: 'stdout', text: `of ${id}\n` }]
  };
}

function notebook(cells: object[]) {
  const kernelspec = { name: 'python3', display_name: 'Python 3 (ipykernel)' };
  return { cells, metadata: { kernelspec }, nbformat: 4, nbformat_minor: 5 };
}

/** The notebook that is open. */
class OpenNotebook {
  constructor(
    private readonly _page: IJupyterLabPageFixture,
    private readonly _folder: string
  ) {}

  /** Write a notebook and open it. */
  async show(name: string, cells: object[]): Promise<string> {
    const path = `${this._folder}/${name}`;
    await this._page.contents.uploadContent(
      JSON.stringify(notebook(cells)),
      'text',
      path
    );
    await this.open(path);
    return path;
  }

  /** Open a notebook that is there, and wait for its kernel. */
  async open(path: string): Promise<void> {
    await (await Notebook.open(this._page, path)).connected();
  }

  cell(index: number): Locator {
    return this._page.locator(
      `.jp-NotebookPanel .jp-Notebook [data-windowed-list-index="${index}"]`
    );
  }

  badge(index: number): Locator {
    return this.cell(index).getByRole('group', { name: /^Agent .*, / });
  }

  get badges(): Locator {
    return this._page.getByRole('group', { name: /^Agent .*, / });
  }

  /** Run a command of the notebook on a cell. */
  async command(id: string, index: number): Promise<void> {
    await this._page.evaluate(
      ([command, at]) => {
        const { app } = window.galata;
        const { content } = app.shell.currentWidget as NotebookPanel;
        content.activeCellIndex = at as number;
        content.deselectAll();
        // Not waited for: a cell may run for long.
        void app.commands.execute(command as string);
      },
      [id, index]
    );
  }
}

const it = started.extend<{
  opened: OpenNotebook;
  attach: (path: string, name?: string) => Promise<NotebookAgent>;
}>({
  opened: async ({ page, tmpPath }, use) => {
    await use(new OpenNotebook(page, tmpPath));
  },
  attach: async ({ request, baseURL }, use) => {
    const agents: NotebookAgent[] = [];
    await use(async (path, name = 'analyst') => {
      const agent = await NotebookAgent.open(request, baseURL!, path, name);
      agents.push(agent);
      return agent;
    });
    for (const agent of agents) {
      await agent.close();
    }
  }
});

it('a badge tells whose a cell is, when it ran and how it ended', async ({
  opened
}) => {
  await opened.show('words.ipynb', [
    codeCell('mine', 'x = 1'),
    codeCell(
      'theirs',
      'y = 2',
      record('y = 2', { claim: { purpose: 'To see\nwhat comes' } })
    ),
    codeCell('failed', 'z', record('z', { status: 'error' })),
    codeCell('before', 'a', record('a', { status: 'running' })),
    codeCell('odd', 'b', { agent: 'analyst' }),
    codeCell('turned', 'c', record('c', { agent: { name: 'an\u202ealyst' } }))
  ]);
  await expect(opened.badge(1)).toContainText('Done');
  await expect(opened.badge(1)).toContainText('1.5 s');
  await expect(opened.badge(1).getByText('“To see what comes”')).toBeVisible();
  await expect(opened.badge(1)).toContainText('“analyst” for ada');
  await expect(opened.badge(1).locator('time')).toHaveAttribute(
    'datetime',
    '2026-01-02T03:04:05.000Z'
  );
  await expect(opened.badge(2)).toContainText('Error');
  await expect(opened.badge(3)).toContainText('Saved before it finished');
  await expect(opened.badge(5)).toContainText('“an\ufffdalyst” for ada');
  const edge = (index: number) =>
    opened.cell(index).evaluate(node => {
      const style = getComputedStyle(node, '::after');
      return `${style.borderInlineStartWidth} ${style.borderInlineStartColor}`;
    });
  expect(await edge(0)).toMatch(/^0px/);
  expect(await edge(1)).toMatch(/^3px/);
  expect(await edge(2)).toBe(await edge(1));
  // Another agent has another colour.
  expect(await edge(5)).not.toBe(await edge(1));
  await expect(opened.badges).toHaveCount(4);
  const hidden = opened.badge(1).getByText('Differs from what ran');
  await expect(hidden).toBeHidden();
});

it('a badge tells that the cell was edited since it ran', async ({
  page,
  opened
}) => {
  await opened.show('edited.ipynb', [
    codeCell('changed', 'y = 3', record('y = 2')),
    codeCell('same', 'z = 2', record('z = 2'))
  ]);
  const words = (index: number) =>
    opened.badge(index).getByText('Differs from what ran');
  await expect(words(0)).toBeVisible();
  await expect(words(1)).toBeHidden();
  await opened.cell(1).locator('.cm-content').click();
  await page.keyboard.press('End');
  await page.keyboard.type('0');
  await expect(words(1)).toBeVisible();
  await page.keyboard.press('Backspace');
  await expect(words(1)).toBeHidden();
});

it('a cell that a person ran again is theirs', async ({ opened }) => {
  const held = {
    execution_count: 1,
    outputs: 'held',
    held: ['application/javascript']
  };
  await opened.show('again.ipynb', [
    codeCell('again', 'print(1)', record('print(1)', held)),
    { ...codeCell('before', '2', record('2', held)), execution_count: 9 }
  ]);
  const badge = opened.badge(0);
  await expect(badge.getByText('JavaScript hidden')).toBeVisible();
  await expect(badge.getByText('Accept outputs')).toBeVisible();
  await expect(badge.getByText('again since')).toBeHidden();
  for (let n = 0; n < 2; n++) {
    await opened.command('notebook:run-cell', 0);
    await expect(opened.cell(0)).toContainText(`[${n + 1}]:`);
  }
  for (const index of [0, 1]) {
    const each = opened.badge(index);
    await expect(each.getByText('Run again since')).toBeVisible();
    await expect(each.getByText(' hidden')).toBeHidden();
    await expect(each.getByText('Accept outputs')).toBeHidden();
  }
});

for (const windowingMode of WINDOWING) {
  it.describe(`with windowing mode ${windowingMode}`, () => {
    it.use({
      mockSettings: {
        ...galata.DEFAULT_SETTINGS,
        '@jupyterlab/notebook-extension:tracker': { windowingMode }
      }
    });

    it('badges survive scrolling, moves, copies and undo', async ({
      page,
      opened
    }) => {
      const cells = Array.from({ length: 80 }, (_, index) =>
        index % 10 === 5
          ? codeCell(`c${index}`, `a${index}`, record(`a${index}`))
          : codeCell(`c${index}`, `x = ${index}`)
      );
      await opened.show('long.ipynb', cells);
      await expect(opened.badge(5)).toHaveCount(1);
      await opened.command('notebook:cut-cell', 5);
      await expect(opened.badge(5)).toHaveCount(0);
      await opened.command('notebook:undo-cell-action', 0);
      await expect(opened.badge(5)).toHaveCount(1);
      await opened.command('notebook:move-cell-up', 5);
      await expect(opened.badge(4)).toHaveCount(1);
      await expect(opened.badge(5)).toHaveCount(0);
      await opened.command('notebook:copy-cell', 4);
      await opened.command('notebook:paste-cell-below', 0);
      await expect(opened.badge(1)).toHaveCount(1);
      await expect(opened.badge(5)).toHaveCount(1);
      await page.evaluate(() => {
        const { content } = window.galata.app.shell
          .currentWidget as NotebookPanel;
        return content.scrollToItem(76, 'center');
      });
      await expect(opened.badge(76)).toBeVisible();
      await page.evaluate(() => {
        const { content } = window.galata.app.shell
          .currentWidget as NotebookPanel;
        return content.scrollToItem(0, 'start');
      });
      await expect(opened.badge(1)).toBeVisible();
      await expect(opened.badge(1)).toContainText('“analyst” for ada');
    });
  });
}

it('badges survive a reload and a copy to another notebook', async ({
  page,
  opened
}) => {
  await opened.show('first.ipynb', [
    codeCell('theirs', 'y = 2', record('y = 2')),
    codeCell('mine', 'x = 1')
  ]);
  await opened.command('notebook:copy-cell', 0);
  const path = await opened.show('second.ipynb', [codeCell('mine', 'x = 1')]);
  await opened.command('notebook:paste-cell-below', 0);
  const second = page.getByRole('main').locator('.jp-NotebookPanel:visible');
  await expect(second.getByRole('group', { name: /^Agent/ })).toHaveCount(1);
  await page.notebook.save();
  await page.reload();
  await opened.open(path);
  await expect(second.getByRole('group', { name: /^Agent/ })).toHaveCount(1);
});

it('a badge follows what others write into the cell', async ({
  page,
  opened
}) => {
  await opened.show('metadata.ipynb', [codeCell('cell', 'y = 2')]);
  await expect(opened.cell(0)).toBeVisible();
  const write = (agent_exec: object | null) =>
    page.evaluate(value => {
      const { content } = window.galata.app.shell
        .currentWidget as NotebookPanel;
      const { sharedModel } = content.widgets[0].model;
      if (value) {
        sharedModel.setMetadata('agent_exec', value as never);
      } else {
        sharedModel.deleteMetadata('agent_exec');
      }
    }, agent_exec);
  await write(record('y = 2'));
  await expect(opened.badge(0)).toContainText('Done');
  await write(record('y = 2', { status: 'interrupted' }));
  await expect(opened.badge(0)).toContainText('Interrupted');
  await write(null);
  await expect(opened.badges).toHaveCount(0);
});

it('the keyboard goes through the active cell’s badge and back', async ({
  page,
  opened
}) => {
  await opened.show('keys.ipynb', [
    codeCell('held', 'y = 2', record('y = 2', { outputs: 'held' })),
    codeCell('other', 'z = 2', record('z = 2'))
  ]);
  const accept = opened
    .badge(0)
    .getByRole('button', { name: 'Accept outputs' });
  await opened.command('notebook:enter-command-mode', 0);
  await expect(accept).toHaveAttribute('tabindex', '0');
  await opened.cell(0).focus();
  await page.keyboard.press('Tab');
  await expect(accept).toBeFocused();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  const more = opened.badge(0).getByRole('button', { name: /^More/ });
  await expect(more).toBeFocused();
  await expect(opened.badge(1).getByRole('button').last()).toHaveAttribute(
    'tabindex',
    '-1'
  );
  await page.keyboard.press('Enter');
  await expect(
    page.locator('.jp-AgentExecMenu [data-type="command"]:visible')
  ).toHaveCount(6);
  await menuOpened(page);
  await page.keyboard.press('Escape');
  await expect(more).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(opened.cell(0)).toBeFocused();
  // Also the one that was active from the start is passed over then.
  await page.keyboard.press('ArrowDown');
  await expect(opened.badge(1).getByRole('button').last()).toHaveAttribute(
    'tabindex',
    '0'
  );
  await expect(accept).toHaveAttribute('tabindex', '-1');
});

it('a refused decision is told in the server’s words', async ({
  page,
  opened
}) => {
  await opened.show('unknown.ipynb', [
    codeCell('held', 'y = 2', record('y = 2', { outputs: 'held' }))
  ]);
  await opened.badge(0).getByRole('button', { name: 'Accept outputs' }).click();
  await expect(page.getByText('There is no such execution.')).toBeVisible();
});

it('a copy’s outputs are not decided on', async ({ page, opened, attach }) => {
  const path = await opened.show('copy.ipynb', [codeCell('mine', 'x = 1')]);
  const agent = await attach(path);
  await agent.run(
    'from IPython.display import Javascript, display\n' +
      'display(Javascript("window.copied = 1"))'
  );
  await expect(opened.badge(1)).toContainText('Done');
  await opened.command('notebook:copy-cell', 1);
  await opened.command('notebook:paste-cell-below', 1);
  const copy = opened.badge(2);
  await copy.getByRole('button', { name: 'Accept outputs' }).click();
  await expect(page.getByText('This cell is a copy.')).toBeVisible();
  expect(await page.evaluate(() => 'copied' in window)).toBe(false);
});

it('a badge leads to its entry, and the entry to its cell', async ({
  page,
  opened,
  attach
}) => {
  const path = await opened.show('there.ipynb', [codeCell('mine', 'x = 1')]);
  const agent = await attach(path, 'guide');
  for (let step = 1; step <= 25; step++) {
    await agent.run(`steps = list(range(${step}))\nprint("step", ${step})`);
  }
  // Another session is looked at meanwhile.
  await attach(path, 'other');
  await page.evaluate(() => {
    const { content } = window.galata.app.shell.currentWidget as NotebookPanel;
    return content.scrollToItem(2, 'center');
  });
  await expect(opened.badge(2)).toContainText('guide');
  await opened.badge(2).hover();
  await opened
    .badge(2)
    .getByRole('button', { name: 'Open Agent Session' })
    .click();
  const session = new Panel(page);
  const entry = session.cell(2);
  await expect(entry).toBeFocused();
  await expect(entry).toBeInViewport();
  await expect(entry).toContainText('print("step", 2)');
  const last = session.cell(25);
  await last.scrollIntoViewIfNeeded();
  await expect(last).toContainText('Changed: steps: 24 → 25');
  await last.getByRole('button', { name: 'Go to the cell' }).click();
  await expect(opened.cell(25)).toBeInViewport();
  await expect(opened.cell(25)).toBeFocused();
  await expect(opened.cell(25)).toContainText('step 25');
});

it('the toolbar tells what an agent does, and stops it', async ({
  page,
  opened,
  attach
}) => {
  const path = await opened.show('toolbar.ipynb', [
    codeCell(
      'mine',
      'import os, time\nprint("on", flush=True)\nwhile not os.path.exists("go-on"):\n    time.sleep(0.05)'
    )
  ]);
  const toolbar = page.locator('.jp-NotebookPanel-toolbar:visible');
  const status = toolbar.getByRole('button', { name: /^Agent “analyst/ });
  const stop = page.getByRole('menuitem', { name: /^Stop .*: cell \d+$/ });
  const run = toolbar.locator('[data-jp-item-name="run"]');
  const before = await run.boundingBox();
  await expect(status).toHaveCount(0);
  const agent = await attach(path);
  await expect(status).toHaveAccessibleName(/: Idle$/);
  expect(await run.boundingBox()).toEqual(before);
  const source = '# wait for it\nimport time\ntime.sleep(600)';
  const { id } = await agent.begin(source);
  await expect(status).toHaveAccessibleName(/: Running # wait for it$/);
  await expect(opened.badge(1)).toContainText(/Running\s*\d+ s/);
  // It leaves room for the toolbar's own items.
  const kernel = toolbar.locator('[data-jp-item-name="kernelName"]');
  await expect(kernel).toBeInViewport({ ratio: 1 });
  expect(await run.boundingBox()).toEqual(before);
  await expect(toolbar.locator('[data-icon="ui-components:stop"]')).toHaveCount(
    1
  );
  // In a small window too, with what the badge says side by side.
  const size = page.viewportSize()!;
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('agent-exec:open-panel')
  );
  await page.setViewportSize({ width: 1200, height: 700 });
  await opened.badge(1).hover();
  await expect(status).toBeInViewport({ ratio: 1 });
  const overprinted = () =>
    opened.badge(1).evaluate(badge => {
      const [line, actions] = Array.from(badge.children, each =>
        each.getBoundingClientRect()
      );
      return (
        line.right > actions.left + 1 ||
        actions.right > badge.getBoundingClientRect().right + 1 ||
        getComputedStyle(badge.children[0]).overflow !== 'hidden'
      );
    });
  await expect.poll(overprinted).toBe(false);
  await page.setViewportSize(size);
  await status.click();
  await stop.click();
  await expect(status).toHaveAccessibleName(/: Idle$/);
  expect(await run.boundingBox()).toEqual(before);
  await expect(opened.badge(1)).toContainText('Interrupted');
  expect((await agent.execution(id)).status).toBe('interrupted');
  await opened.command('notebook:run-cell', 0);
  // The prompt says so before the kernel does.
  await expect(opened.cell(0).locator('.jp-OutputArea-output')).toHaveText(
    'on'
  );
  await agent.atWork();
  await agent.begin('1 + 1');
  await expect(status).toHaveAccessibleName(/: Waiting for a running cell$/);
  await expect(opened.badge(2)).toContainText('Waiting for a running cell');
  const folder = path.slice(0, path.lastIndexOf('/'));
  await page.contents.uploadContent('', 'text', `${folder}/go-on`);
  await expect(opened.badge(2)).toContainText('Done');
  await agent.close();
  await expect(status).toHaveCount(0);
  expect(await run.boundingBox()).toEqual(before);
});

it('several agents in a notebook are named in a menu', async ({
  page,
  opened,
  attach
}) => {
  const path = await opened.show('several.ipynb', [codeCell('mine', 'x = 1')]);
  await attach(path, 'first');
  await attach(path, 'second');
  const toolbar = page.locator('.jp-NotebookPanel-toolbar:visible');
  await toolbar.getByRole('button', { name: /2 agents/ }).click();
  await expect(
    page.getByRole('menuitem', { name: 'Show What “first” Does' })
  ).toBeVisible();
  await page.getByRole('menuitem', { name: 'Show What “second” Does' }).click();
  const { about } = new Panel(page);
  await expect(about).toContainText('second');
  await expect(about.getByRole('button', { name: path })).toBeVisible();
});
