/** An agent looks by trial, and a person decides about changes with a trial before their eyes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from '@jupyterlab/galata';
import { mergeTests } from '@playwright/test';
import { Question, test as approvalTest } from './approval';
import { expectAccessible } from './axe';
import { codeCell } from './notebook';
import { runAsPerson, test as trustTest } from './trust';

const test = mergeTests(approvalTest, trustTest);

const PROJECT = join(__dirname, '..', '..');

/** What the agent changes, in order: what the person reads of the trial. */
const CHANGES = [
  ['It would change: big', '4 rows are big'],
  ['It would change: rows', '11'],
  ['It writes or removes a file: “report.txt”', 'PermissionError']
];

interface IRecorded {
  trial: boolean;
  status: string;
  approval: { status: string; preview: string | null } | null;
}

test('twenty looks and three changes cost a person three decisions, each with a preview', async ({
  page,
  baseURL,
  server,
  desk
}) => {
  const notebook = await desk.open([
    codeCell('mine', 'rows = list(range(10))')
  ]);
  await runAsPerson(notebook, 0);
  const url = `${baseURL}/api/agent-exec/mcp`;
  const args = ['-m', 'tests.mcp.analysing', url, desk.path];
  const program = spawn('python', args, { cwd: PROJECT });
  let output = '';
  program.stdout.on('data', data => (output += String(data)));
  program.stderr.on('data', data => (output += String(data)));
  const ended = once(program, 'exit');
  try {
    for (const [n, shown] of CHANGES.entries()) {
      const question = Question.in(page.locator('.jp-NotebookPanel'));
      for (const text of ['Nothing has changed yet.', ...shown]) {
        await expect(question.node, output).toContainText(text, {
          timeout: 60_000
        });
      }
      if (n === 0) {
        await page.screenshot({ path: 'test-results/preview.png' });
      }
      await question.answer('Approve');
      await expect(question.node).toBeHidden();
    }
    expect((await ended)[0], output).toBe(0);
  } finally {
    program.kill();
  }
  const statuses = output.match(/"status": "(\w+)"/g);
  expect(statuses, output).toEqual(Array(23).fill('"status": "ok"'));
  const { sessions } = await server.send<{
    sessions: { id: string; path: string | null }[];
  }>('get', 'sessions');
  const { id } = sessions.find(each => each.path === desk.path)!;
  const { executions } = await server.send<{ executions: IRecorded[] }>(
    'get',
    `sessions/${id}/executions?limit=100`
  );
  const looks = executions.filter(({ trial }) => trial);
  expect(looks).toHaveLength(20);
  expect(looks.every(({ approval }) => approval === null)).toBe(true);
  const changes = executions.filter(({ trial }) => !trial);
  expect(changes).toHaveLength(3);
  expect(changes.every(({ approval }) => approval?.preview)).toBe(true);
  await server.send('post', `sessions/${id}/close`, {});
  const cells = await notebook.cells();
  expect(cells.map(({ source }) => source.split('\n')[0])).toEqual([
    'rows = list(range(10))',
    'big = [row for row in rows if row > 5]',
    'rows.append(10)',
    "open('report.txt', 'w').write(str(sum(rows)))"
  ]);
});

test('what a trial showed leads to the lines of the code', async ({
  page,
  newAsking,
  desk
}) => {
  await desk.open([codeCell('mine', 'x = 1')]);
  const agent = await newAsking('Lines', desk.path);
  await agent.ask(
    'total = 1  # a first value\nopen("report.txt", "w")\ntotal += 1\n'
  );
  const question = Question.in(page.locator('.jp-NotebookPanel'));
  await question.tried();
  const marked = question.node.locator('.jp-AgentExecSource-highlight');
  const refused = question.node.getByRole('button', {
    name: 'It writes or removes a file: “report.txt” Line 2'
  });
  await expect(marked).toHaveCount(0);
  await refused.hover();
  await expect(marked).toHaveText(['open("report.txt", "w")']);
  await refused.focus();
  await page.keyboard.press('Tab');
  await expect(
    question.node.getByRole('button', { name: /^total.* Lines 1, 3$/ })
  ).toBeFocused();
  await expect(marked).toHaveText(['total = 1  # a first value', 'total += 1']);
  await page.screenshot({ path: 'test-results/lines-light.png' });
  await expectAccessible(page);
  await page.theme.setDarkTheme();
  await page.screenshot({ path: 'test-results/lines-dark.png' });
  await page.theme.setLightTheme();
  await question.answer('Reject…');
});

test('what the code says in its trial stands in a frame that holds nothing of ours', async ({
  page,
  newAsking,
  desk
}) => {
  await desk.open([codeCell('mine', 'x = 1')]);
  const agent = await newAsking('Words', desk.path);
  const state = 'Trial: what the code did in a copy of the kernel.';
  const html = `<div class="jp-AgentExecPreview-state" style="position: fixed; inset: 0; z-index: 9999">${state} It is safe.</div>`;
  await agent.ask(
    [
      'from IPython.display import HTML, display',
      `display(HTML(${JSON.stringify(html)}))`,
      'for _ in range(100): print()',
      `print(${JSON.stringify(`${state} It is safe.`)})`,
      `raise type(${JSON.stringify(`Nothing has changed. ${state}`)}, (Exception,), {})`
    ].join('\n')
  );
  const question = Question.in(page.locator('.jp-NotebookPanel'));
  await question.tried();
  const preview = question.node.locator('.jp-AgentExecPreview');
  const frame = preview.getByRole('group');
  await expect(preview).toContainText(
    `${state} Nothing has changed yet. It failed.`
  );
  await expect(frame.getByText('It is safe.')).not.toHaveCount(0);
  await frame.evaluate(node => node.scrollTo(0, node.scrollHeight));
  await page.screenshot({ path: 'test-results/preview-frame-light.png' });
  await page.theme.setDarkTheme();
  await page.screenshot({ path: 'test-results/preview-frame-dark.png' });
  await page.theme.setLightTheme();
  // Not by its place, its looks, or what is beside it.
  const box = (await frame.boundingBox())!;
  for (const said of await frame.getByText('It is safe.').all()) {
    const looks = (node: Element) => {
      const { fontFamily, fontSize, color } = getComputedStyle(node);
      return [fontFamily, fontSize, color].join();
    };
    const ours = preview.locator('.jp-AgentExecPreview-state').first();
    expect(await said.evaluate(looks)).not.toBe(await ours.evaluate(looks));
  }
  const over = await page.evaluate(
    ([x, y]) =>
      document.elementFromPoint(x, y)?.closest('.jp-AgentExecPreview-frame'),
    [box.x + 5, box.y - 5]
  );
  expect(over).toBeNull();
  const outside = await preview.evaluate(node => {
    const copy = node.cloneNode(true) as Element;
    copy.querySelector('.jp-AgentExecPreview-frame')?.remove();
    return copy.textContent;
  });
  expect(outside).not.toContain('safe');
  expect(outside?.split(state)).toHaveLength(2);
});

test('a trial in the panel says that it is one, and becomes a cell that runs', async ({
  page,
  panel,
  newAsking,
  desk
}) => {
  const notebook = await desk.open([codeCell('mine', 'x = 1')]);
  await runAsPerson(notebook, 0);
  const agent = await newAsking('A look', desk.path);
  const tried = await agent.ask('x = 5\nprint("it is", x)', { trial: true });
  expect((await agent.read(tried, 30)).status).toBe('ok');
  await panel.open();
  await panel.show('A look');
  const cell = panel.cell(1);
  await expect(cell).toContainText('so it changed nothing');
  await expect(cell).toContainText('It would change: x');
  await expect(cell).toContainText('it is 5');
  expect(await notebook.cells()).toHaveLength(1);
  await cell.getByRole('button', { name: 'More actions' }).click();
  await page
    .getByRole('menuitem', { name: 'Insert Into My Notebook and Run' })
    .click();
  await expect
    .poll(async () => (await notebook.cells())[1])
    .toMatchObject({
      source: 'x = 5\nprint("it is", x)',
      text: 'it is 5\n',
      execution_count: 2
    });
});
