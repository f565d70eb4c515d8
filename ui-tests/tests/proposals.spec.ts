/** A user decides about the edits that an agent proposes, in the notebook. */
import { expect } from '@jupyterlab/galata';
import { expectAccessible } from './axe';
import { codeCell, OpenNotebook } from './notebook';
import { Panel } from './panel';
import { Person } from './person';
import { ProposingAgent, ShownProposals } from './proposing';
import { holdScripts } from './scripts';
import { test } from './trust';

const CELLS = [
  codeCell('load', 'import pandas\ndf = 1'),
  codeCell('plot', 'df.plot()'),
  codeCell('old', 'print("old")'),
  codeCell('last', 'df')
];

test('proposed edits change nothing until the user keeps them, one by one or all', async ({
  page,
  desk,
  request,
  baseURL
}) => {
  let notebook = await desk.open(CELLS);
  const sources = async () =>
    (await notebook.cells()).map(({ source }) => source);
  const agent = await ProposingAgent.open(request, baseURL!, desk.path);
  await new Person(page).select(0); // Control-S is for where the keyboard is
  await notebook.save();
  const [added] = await agent.propose(
    { op: 'insert', cell_type: 'code', source: 'new = 1', after: 'load' },
    { op: 'replace', cell_id: 'load', source: 'import pandas\ndf = 2' },
    { op: 'delete', cell_id: 'old' },
    { op: 'move', cell_id: 'last', before: 'load' }
  );
  const shown = new ShownProposals(page);
  await expect(shown.edits).toHaveCount(4);
  await expect(shown.bar).toContainText('“analyst”\u2069 proposes 4 changes');
  await expect(shown.edit('New code cell')).toContainText('new = 1');
  const change = shown.edit('Change this cell');
  await expect(change.locator('del')).toHaveText('df = 1');
  await expect(change.locator('ins')).toHaveText('df = 2');
  expect(await sources()).toEqual(CELLS.map(({ source }) => source));
  expect(await notebook.dirty()).toBe(false);
  await page.screenshot({ path: 'test-results/proposals.png' });

  // The user types in the same cell: what is proposed is merged with it.
  const editor = new Person(page)
    .cell(0)
    .locator('.jp-Cell-inputWrapper .cm-content');
  await editor.click();
  await page.keyboard.press('Control+Home');
  await page.keyboard.type('# mine\n');
  await expect(change.locator('.cm-content')).toContainText('# mine');
  await expect(change.locator('del')).toHaveText('df = 1');
  await expect(editor).toBeFocused();
  await notebook.save();

  // It is all there after a reload, and the keyboard leads through it.
  notebook = await desk.reopen();
  await expect(shown.edits).toHaveCount(4);
  await shown.all('Next');
  await expect(shown.edits.first()).toBeFocused();

  // Another tab shows it too: what is decided there is decided here.
  const other = await page.context().newPage();
  await other.goto(`${baseURL}/lab/workspaces/other/tree/${desk.path}`);
  const there = new ShownProposals(other);
  await expect(there.edits).toHaveCount(4);
  await there.keep(there.edit('New code cell'));
  await expect(shown.edits).toHaveCount(3);
  await expect(there.edits).toHaveCount(3);
  await expect(there.bar).toContainText('1 kept');
  await expect.poll(sources).toContain('new = 1');
  await other.close();
  expect((await notebook.cells())[1].id).toBe(added);
  await shown.reject(shown.edit('Delete this cell'));
  await expect(shown.edits).toHaveCount(2);
  await shown.all('Keep all');
  await expect(shown.edits).toHaveCount(0);
  await expect(shown.bar).toContainText('2 kept');
  expect(await sources()).toEqual([
    'df',
    '# mine\nimport pandas\ndf = 2',
    'new = 1',
    'df.plot()',
    'print("old")'
  ]);
  expect(await agent.statuses()).toEqual({
    [added]: 'kept',
    load: 'kept',
    old: 'rejected',
    last: 'kept'
  });

  // What was kept is undone, as long as it is as the agent left it.
  await shown.all('Undo');
  await expect
    .poll(sources)
    .toEqual([
      '# mine\nimport pandas\ndf = 1',
      'new = 1',
      'df.plot()',
      'print("old")',
      'df'
    ]);

  // What was kept is proposed again; rejecting all of it can be undone too.
  await expect(shown.bar).toContainText('2 proposed again');
  await expect(shown.edits).toHaveCount(2);
  await shown.all('Reject all');
  await expect(shown.edits).toHaveCount(0);
  await expect(shown.bar).toContainText('2 rejected');
  await shown.all('Undo');
  await expect(shown.edits).toHaveCount(2);
  await shown.all('Reject all');
  // What is dismissed before is what was told of the last decision.
  await expect(shown.bar).toContainText('2 rejected');
  await shown.all('Dismiss');
  await expect(shown.bar).toBeHidden();

  // What no longer fits says so, and is not made.
  await agent.propose(
    { op: 'replace', cell_id: 'plot', source: 'df.plot.bar()' },
    { op: 'insert', cell_type: 'code', source: 'end', after: 'last' }
  );
  // They move the cells below them.
  await expect(shown.edits).toHaveCount(2);
  await new Person(page)
    .cell(2)
    .locator('.jp-Cell-inputWrapper .cm-content')
    .click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('.mine');
  const unfit = shown.edit('Change this cell');
  await expect(unfit).toContainText('were edited since');
  await expect(unfit.getByRole('button', { name: 'Keep' })).toBeHidden();
  await page.screenshot({ path: 'test-results/proposals-unfit.png' });
  await shown.all('Keep all');
  await expect(shown.bar).toContainText('1 kept · 1 no longer fits');
  await expect(shown.edits).toHaveCount(0);
  const after = await sources();
  expect(after[2]).toBe('df.plot().mine');
  expect(after[5]).toBe('end');

  // The user goes on in a cell that they have kept: it is theirs now.
  await new Person(page)
    .cell(5)
    .locator('.jp-Cell-inputWrapper .cm-content')
    .click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('.mine');
  await shown.all('Undo');
  await expect(shown.bar).toContainText(
    '1 cannot be undone: The cell was edited since.'
  );
  expect((await sources())[5]).toBe('end.mine');
  await agent.close();
});

test('a proposal for a notebook that is not open waits in the panel', async ({
  page,
  desk,
  request,
  baseURL
}) => {
  const panel = new Panel(page);
  await desk.files.write(desk.path, CELLS);
  const agent = await ProposingAgent.open(request, baseURL!, desk.path, 'Tidy');
  await agent.propose(
    { op: 'replace', cell_id: 'load', source: 'import pandas\ndf = 2' },
    { op: 'delete', cell_id: 'old' }
  );
  const status = page.locator('#jp-main-statusbar');
  await expect(
    status.getByRole('button', { name: '1 proposal' })
  ).toBeVisible();
  const notice = page.locator('.Toastify__toast', {
    hasText: '“analyst” (my token): 2 proposed changes of'
  });
  await expect(notice).toBeVisible();

  // Its session shows what the agent did, and the way there opens the notebook.
  await status.getByRole('button', { name: '1 proposal' }).click();
  await expect(notice).toHaveCount(0);
  await expect(panel.session('Tidy')).toContainText('2 changes proposed');
  await expect(panel.session('Tidy')).not.toContainText('0 cells');
  await panel.show('Tidy');
  const list = panel.document.locator('.jp-AgentExecEdits');
  await expect(list.getByText('Proposed: 2')).toBeVisible();
  await panel.region.getByRole('button', { name: 'Open', exact: true }).click();
  const shown = new ShownProposals(page);
  await expect(shown.edits).toHaveCount(2);
  await shown.keep(shown.edit('Change this cell'));
  await shown.reject(shown.edit('Delete this cell'));
  await panel.show('Tidy');
  await expect(list).toContainText('Kept: 1');
  await expect(list).toContainText('Rejected: 1');
  await expect(list.getByRole('listitem')).toHaveText([
    'Kept · Change import pandas',
    'Rejected · Delete print("old")'
  ]);
  await expect(status.getByRole('button', { name: /proposal/ })).toHaveCount(0);
  await list.getByRole('button', { name: /^Change/ }).click();
  await expect(new Person(page).cell(0)).toBeFocused();
  await agent.close();
});

test('a person keeps a part of a change, edits the rest, and says why not', async ({
  page,
  desk,
  request,
  baseURL
}) => {
  const lines = (first: string, last: string) =>
    [first, 'b = 2', 'c = 3', 'd = 4', 'e = 5', last].join('\n');
  const notebook = await desk.open([
    codeCell('long', lines('a = 1', 'f = 6')),
    codeCell('old', 'print("old")')
  ]);
  const agent = await ProposingAgent.open(request, baseURL!, desk.path);
  await agent.propose(
    { op: 'replace', cell_id: 'long', source: lines('a = 7', 'f = 8') },
    { op: 'delete', cell_id: 'old' }
  );
  const shown = new ShownProposals(page);
  const change = shown.edit('Change this cell');
  await change
    .getByRole('button', { name: 'Leave this part out' })
    .first()
    .click();
  await expect(change.locator('del')).toHaveText('f = 6');
  await change.getByRole('button', { name: 'Discard edits' }).click();
  await expect(change.locator('del')).toHaveCount(2);
  await change
    .getByRole('button', { name: 'Leave this part out' })
    .first()
    .click();
  await change.locator('.cm-content').click();
  await change.getByRole('button', { name: 'Discard edits' }).waitFor();
  await expectAccessible(page);
  const colour = (name: string) =>
    change
      .getByRole('button', { name })
      .evaluate(node => getComputedStyle(node).color);
  expect(await colour('Leave this part out')).toBe(
    await colour('Show the code')
  );
  await page.screenshot({ path: test.info().outputPath('part.png') });
  await shown.keep(change);
  const sources = async () =>
    (await notebook.cells()).map(({ source }) => source);
  await expect.poll(sources).toEqual([lines('a = 1', 'f = 8'), 'print("old")']);
  await shown.reject(shown.edit('Delete this cell'), 'I still need it.');
  await expect(shown.edits).toHaveCount(0);
  expect(await agent.statuses()).toEqual({ long: 'kept', old: 'rejected' });

  // A new cell, written by the agent and then by the person.
  await agent.propose({ op: 'insert', cell_type: 'code', source: 'g = 9' });
  const added = shown.edit('New code cell');
  await added.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('g = 10');
  await shown.keep(added);
  await expect.poll(sources).toContain('g = 10');
  await agent.close();
});

test('next leads through 60 cells, to each card with its buttons and its cell', async ({
  page,
  desk,
  request,
  baseURL
}) => {
  const cells = Array.from({ length: 60 }, (_, n) =>
    codeCell(`c${n}`, `first = ${n}\n\n\nlast = ${n}`)
  );
  const notebook = await desk.open(cells);
  const agent = await ProposingAgent.open(request, baseURL!, desk.path);
  await notebook.save();
  await agent.propose(
    ...[5, 30, 58].map(n => ({
      op: 'replace',
      cell_id: `c${n}`,
      source: `first = ${n}\n\nlast = "${n}"`
    })),
    { op: 'insert', cell_type: 'code', source: 'new = 1', after: 'c40' }
  );
  const shown = new ShownProposals(page);
  for (const [n, text] of [
    [5, '"5"'],
    [30, '"30"'],
    [40, 'new = 1'],
    [58, '"58"'],
    [5, '"5"']
  ] as const) {
    await shown.all('Next');
    const card = shown.edits.filter({ hasText: text });
    await expect(card).toBeFocused();
    await expect(card).toBeInViewport({ ratio: 0.99 });
    await expect(
      card.getByRole('button', { name: 'Keep', exact: true })
    ).toBeInViewport({ ratio: 0.99 });
    await expect(
      new Person(page).cell(n).locator('.jp-Cell-inputWrapper')
    ).toBeInViewport({ ratio: 0.99 });
  }
  await page.screenshot({ path: 'test-results/proposals-next.png' });
  await shown.all('Reject all');
  await expect(shown.edits).toHaveCount(0);
  await agent.close();
});

test.describe('in a page of its own', () => {
  test.use({ samePage: false });

  test('for a notebook that was closed before it was shown, nothing is read', async ({
    desk,
    page,
    tmpPath
  }) => {
    const asked: (string | null)[] = [];
    page.on('request', request => {
      if (request.url().includes('/agent-exec/proposals?')) {
        asked.push(new URL(request.url()).searchParams.get('path'));
      }
    });
    const other = `${tmpPath}/other.ipynb`;
    await desk.files.write(other, CELLS);
    const release = await holdScripts(page);
    await desk.open(CELLS);
    await page.evaluate(() => window.jupyterapp.shell.currentWidget!.dispose());
    await OpenNotebook.open(page, other);
    release();
    await expect.poll(() => asked).toContain(other);
    expect(asked).not.toContain(desk.path);
  });
});
