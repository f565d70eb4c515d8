/** A person decides what agents run, before it runs. */
import { expect, galata } from '@jupyterlab/galata';
import { mergeTests } from '@playwright/test';
import { Question, test as approvalTest } from './approval';
import { codeCell, Files, OpenNotebook } from './notebook';
import { tabTo } from './panel';
import { Person } from './person';
import { ProposingAgent } from './proposing';
import { test as trustTest } from './trust';

const test = mergeTests(approvalTest, trustTest);

test('the panel leads to what asks, and it runs when it is approved', async ({
  page,
  panel,
  newAsking
}) => {
  const agent = await newAsking('approved');
  await panel.open();
  const asked = await agent.ask('print("ran", 6 * 7)');
  expect(asked.status).toBe('awaiting_approval');
  await page.getByRole('button', { name: 'print("ran", 6 * 7)' }).click();
  const question = Question.in(panel.cell(1));
  await expect(question.node).toContainText('analyst 1.2 (any-model)');
  await expect(question.node).toContainText(/expires in \d+ minutes/);
  await expect.poll(() => question.lines()).toEqual(['print("ran", 6 * 7)']);
  await question.answer('Approve');
  await expect(panel.cell(1)).toContainText('ran 42');
  expect((await agent.read(asked, 30)).text).toContain('ran 42');
  await expect(question.node).toBeHidden();
  await expect(
    panel.region.getByText(/needs? approval/).filter({ visible: true })
  ).toHaveCount(0);
});

test('a line of the panel says what asks and where, and approves or rejects it', async ({
  page,
  panel,
  newAsking,
  desk
}) => {
  await desk.open([codeCell('mine', 'x = 1')]);
  await panel.open();
  const scratch = await newAsking('alone');
  const there = await newAsking('in the notebook', desk.path);
  const ran = await scratch.ask('print("ran", 6 * 7)');
  const long = await there.ask('y = 2\nz = 3\nprint(y)');
  const alike = await scratch.ask('\u0440rint("alike")');
  const wide = await scratch.ask(`wide = 1; ${' '.repeat(90)} hidden = 2`);
  const lines = panel.region.locator('.jp-AgentExecAsking-line');
  const line = (text: string) => lines.filter({ hasText: text });
  const button = (text: string, name: string) =>
    line(text).getByRole('button', { name, exact: true });
  await page.sidebar.setWidth(560, 'right');
  await expect(lines).toHaveCount(4);
  await expect(line('print("ran", 6 * 7)')).toContainText('Scratch kernel');
  await expect(line('y = 2')).toContainText('+2 lines');
  await expect(line('y = 2')).toContainText('notebook.ipynb');
  const heights = await lines.evaluateAll(all =>
    all.map(each => each.getBoundingClientRect().height)
  );
  expect(Math.max(...heights)).toBeLessThan(32);
  await page.screenshot({ path: 'test-results/asking.png' });

  // What cannot be seen here is approved only where it can be seen.
  for (const text of ['y = 2', 'wide = 1', 'alike']) {
    await expect(button(text, 'View code')).toBeVisible();
    await expect(button(text, 'Approve')).toHaveCount(0);
  }
  const question = Question.in(new Person(page).cell(0));
  await button('y = 2', 'View code').click();
  await expect(question.node).toBeFocused();

  // What the user makes of it in the notebook is what runs.
  await question.answer('Edit');
  await question.source.press('ControlOrMeta+a');
  await question.source.pressSequentially('print("edited")');
  await expect(line('y = 2')).toHaveCount(0);
  await button('print("edited")', 'Approve').click();
  expect(await there.read(long, 30)).toMatchObject({
    source: 'print("edited")',
    text: 'edited\n'
  });
  // Buttons answer nothing while the list has just changed.
  await expect(lines).toHaveCount(3);

  // A line that is whole can be approved, however narrow the panel is.
  const whole = line('print("ran"').locator('code');
  await page.sidebar.setWidth(251, 'right');
  expect(
    await whole.evaluate(code => code.scrollWidth <= code.clientWidth)
  ).toBe(true);
  await page.sidebar.setWidth(560, 'right');
  await button('print("ran"', 'Approve').click();
  expect((await scratch.read(ran, 30)).text).toContain('ran 42');
  await expect(lines).toHaveCount(2);
  await button('alike', 'View code').click();
  const marked = Question.in(panel.cell(2));
  await expect.poll(() => marked.lines()).toEqual(['U+0440rint("alike")']);
  expect((await scratch.read(alike)).status).toBe('awaiting_approval');
  await button('wide = 1', 'Reject').click();
  expect((await scratch.read(wide, 30)).status).toBe('rejected');
  await expect(lines).toHaveCount(1);
  await button('alike', 'Reject').click();
  expect((await scratch.read(alike, 30)).status).toBe('rejected');
  await expect(lines).toHaveCount(0);
});

test('a proposal is no cell: nothing runs, saves or takes it', async ({
  page,
  request,
  baseURL,
  desk,
  newAsking
}) => {
  const notebook = await desk.open([
    codeCell('first', 'x = 1'),
    codeCell('second', 'y = 2')
  ]);
  const agent = await newAsking('in a notebook', desk.path);
  const placement = { after: 'first' };
  const asked = await agent.ask('print("there", x + y)', { placement });
  const next = await agent.ask('"next"', { placement });
  const person = new Person(page);
  const question = Question.in(person.cell(0));
  await expect(person.cell(0).locator('.jp-AgentExecProposal')).toHaveCount(2);
  await expect.poll(() => question.lines()).toEqual(['print("there", x + y)']);
  await notebook.connected();
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('notebook:run-all-cells')
  );
  await person.select(0);
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('notebook:move-cell-down')
  );
  await expect(Question.in(person.cell(1)).node).toBeVisible();
  await notebook.save();
  const cells = [
    { source: 'y = 2', text: '' },
    { source: 'x = 1', text: '' }
  ];
  expect(await new Files(request, baseURL!).cells(desk.path)).toEqual(cells);
  expect(await notebook.cells()).toMatchObject([
    { source: 'y = 2', execution_count: 2 },
    { source: 'x = 1', execution_count: 1 }
  ]);
  expect((await agent.read(asked)).status).toBe('awaiting_approval');

  await page.reload();
  const here = Question.in(person.cell(1));
  await expect(here.node).toBeVisible();
  const other = await page.context().newPage();
  await other.goto(`${baseURL}/lab/workspaces/second/tree/${desk.path}`);
  await new OpenNotebook(other, desk.path).ready(request, baseURL!, 2);
  const there = Question.in(new Person(other).cell(1));
  await there.answer('Approve');
  for (const each of [page, other]) {
    await expect(each.locator('.jp-AgentExecProposal')).toHaveCount(1);
  }
  expect((await agent.read(asked, 30)).text).toContain('there 3');
  await Question.in(other).answer('Reject…');
  await expect(other.getByRole('dialog')).toBeVisible();
  await other.keyboard.press('Enter');
  expect((await agent.read(next, 30)).status).toBe('rejected');
  await expect(page.locator('.jp-AgentExecProposal')).toHaveCount(0);
  await other.close();
});

test('a cell of the person stays as it is until what changes is approved', async ({
  baseURL,
  page,
  request,
  server,
  desk
}) => {
  const source = 'x = 1\nprint(x)';
  const notebook = await desk.open([codeCell('mine', source)]);
  await server.setPolicy({ notebook: 'always' });
  const agent = await ProposingAgent.open(request, baseURL!, desk.path);
  await agent.ask('x = 2\nprint(x)', { cell: 'mine' });
  const question = Question.in(new Person(page).cell(0));
  expect(await question.lines()).toEqual(['x = 2', 'print(x)']);
  await expect(question.node).toContainText('replaces this cell and runs it');
  await expect(question.node.getByRole('deletion')).toHaveCount(0);
  await question.button('Show what differs').click();
  await expect(question.node.getByRole('deletion')).toHaveText('x = 1');
  await expect(question.node.getByRole('insertion')).toHaveText('x = 2');
  expect(await question.lines()).toEqual(['x = 2', 'print(x)']);
  expect(await notebook.cells()).toMatchObject([{ source }]);
  await question.answer('Approve');
  await notebook.last('2\n');
  expect(await notebook.cells()).toMatchObject([{ source: 'x = 2\nprint(x)' }]);
  await agent.close();
});

test('what is approved and waits for its turn survives a reload', async ({
  page,
  request,
  baseURL,
  desk,
  newAsking
}) => {
  const gate = 'while not os.path.exists("go"):\n    time.sleep(0.05)';
  const notebook = await desk.open([
    codeCell('mine', `import os, time\nprint("on", flush=True)\n${gate}`),
    codeCell('last', 'x = 1')
  ]);
  const agent = await newAsking('waits', desk.path);
  const person = new Person(page);
  await person.run(0);
  // The prompt says so before the kernel does.
  await expect(person.cell(0).locator('.jp-OutputArea-output')).toHaveText(
    'on'
  );
  await expect(person.prompt(0)).toHaveText('[*]:');
  await agent.atWork();
  const placement = { after: 'mine' };
  const asked = await agent.ask('print("first")', { placement });
  const next = await agent.ask('print("second")', { placement });
  await Question.in(person.cell(0)).button('Approve').click();
  const waiting = person
    .cell(0)
    .getByRole('status')
    .filter({ hasText: /^Approved.*Waiting/ });
  await expect(waiting).toBeVisible();
  await page.reload();
  await expect(waiting).toBeVisible();
  await expect(page.locator('.jp-AgentExecProposal')).toHaveCount(2);
  const sources = async () =>
    (await notebook.cells()).map(({ source }) => source.split('\n').pop());
  expect(await sources()).toEqual(['    time.sleep(0.05)', 'x = 1']);

  const folder = desk.path.slice(0, desk.path.lastIndexOf('/'));
  await new Files(request, baseURL!).touch(`${folder}/go`);
  expect((await agent.read(asked, 30)).status).toBe('ok');
  await expect(waiting).toBeHidden();
  await expect(person.cell(1)).toContainText('first');
  await Question.in(person.cell(1)).answer('Approve');
  expect((await agent.read(next, 30)).status).toBe('ok');
  await expect(page.locator('.jp-AgentExecProposal')).toHaveCount(0);
  await expect
    .poll(sources)
    .toEqual([
      '    time.sleep(0.05)',
      'print("first")',
      'print("second")',
      'x = 1'
    ]);
});

test('the agent reads why it was rejected', async ({
  page,
  panel,
  newAsking
}) => {
  const agent = await newAsking('rejected');
  const asked = await agent.ask('import shutil; shutil.rmtree("data")');
  await panel.open();
  await panel.show('rejected');
  const question = Question.in(panel.cell(1));
  await question.answer('Reject…');
  await expect(page.getByRole('textbox', { name: /^Reason/ })).toBeFocused();
  await page.keyboard.type('Not the data, please.');
  await page.keyboard.press('Enter');
  await expect(question.outcome).toHaveText(/^Rejected/);
  const { reason, status } = await agent.read(asked, 30);
  expect(status).toBe('rejected');
  expect(reason).toContain('Not the data, please.');
});

test('the keyboard alone rejects in a notebook, and stays there', async ({
  page,
  desk,
  newAsking
}) => {
  await desk.open([codeCell('mine', 'x = 1')]);
  const agent = await newAsking('rejected in a notebook', desk.path);
  const asked = await agent.ask('y = 2');
  const question = Question.in(new Person(page).cell(0));
  await question.tried();
  await question.node.focus();
  await page.keyboard.press('Tab');
  await expect(question.source).toBeFocused();
  await page.keyboard.press('Tab');
  await expect(question.button('y Line 1')).toBeFocused();
  await page.keyboard.press('Tab');
  await expect(question.button('Approve')).toBeFocused();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await expect(question.button('Reject…')).toBeEnabled();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Enter');
  expect((await agent.read(asked, 30)).status).toBe('rejected');
  await expect(question.node).toBeHidden();
  await expect(
    page.locator('.jp-NotebookPanel .jp-Notebook :focus')
  ).toHaveCount(1);
});

test('an agent runs more without asking, until a person ends that', async ({
  page,
  panel,
  newAsking,
  desk
}) => {
  await desk.open([codeCell('mine', 'x = 1')]);
  const agent = await newAsking('granted', desk.path);
  await panel.open();
  const first = await agent.ask('1');
  const question = Question.in(new Person(page).cell(0));
  await question.answer('Approve and let it run…');
  await page
    .getByRole('dialog')
    .getByRole('button', { name: 'Until the kernel restarts' })
    .click();
  expect((await agent.read(first, 30)).status).toBe('ok');
  const second = await agent.ask('2');
  expect((await agent.read(second, 30)).status).toBe('ok');
  await panel.show('granted');
  const granted = panel.document.getByText('Runs code without asking until');
  await expect(granted).toBeVisible();
  await OpenNotebook.open(page, desk.path);
  await page.locator('.jp-AgentExecStatus-main').click();
  await page
    .locator('.jp-AgentExecMenu')
    .getByText(/Ask Again$/)
    .click();
  await panel.show('granted');
  await expect(granted).toBeHidden();
  expect((await agent.ask('3')).status).toBe('awaiting_approval');
});

test.describe('without approval', () => {
  test.use({ policy: { scratch: 'none' } });

  test('all agents are paused, and go on', async ({ panel, newAsking }) => {
    const agent = await newAsking('paused');
    await panel.open();
    await panel.button('Pause agents').click();
    await expect(panel.region).toContainText(
      /All agents are paused .*Code that runs goes on/
    );
    const asked = await agent.ask('1 + 1');
    await expect
      .poll(async () => (await agent.read(asked)).waiting_for?.who)
      .toBe('pause');
    await panel.button('Resume agents').click();
    expect((await agent.read(asked, 30)).status).toBe('ok');
    await expect(panel.button('Pause agents')).toBeFocused();
    await expect(panel.region.getByText('agents are paused')).toBeHidden();
  });
});

test('nothing hides in a source, and nothing turns it', async ({
  page,
  panel,
  newAsking
}) => {
  const agent = await newAsking('hidden');
  const source = [
    'if user != "admin\u202e \u2066# check\u2069 \u2066":',
    '    os\u200b.remove("a\u00a0b")',
    '# harmless\r!rm -rf data',
    '%%bash',
    'x = "שלום" + "ab"',
    `y = "${'long '.repeat(100)}"`,
    '<img src=x onerror="document.title = 1">'
  ].join('\n');
  await agent.ask(source);
  await panel.open();
  await panel.show('hidden');
  const question = Question.in(panel.cell(1));
  const first = async () => (await question.lines()).slice(0, 5);
  await expect
    .poll(first)
    .toEqual([
      'if user != "adminU+202E U+2066# checkU+2069 U+2066":',
      '    osU+200B.remove("aU+00A0b")',
      '# harmlessU+000D',
      '!rm -rf data',
      '%%bash'
    ]);
  // What is written from the right stays where it stands in the source.
  const line = question.source.locator('.cm-line').nth(5);
  const places = await line.evaluate(node => {
    const range = document.createRange();
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    const found: number[] = [];
    while (walker.nextNode()) {
      range.selectNodeContents(walker.currentNode);
      found.push(range.getBoundingClientRect().left);
    }
    return found;
  });
  expect(places.length).toBeGreaterThan(2);
  expect(places).toEqual([...places].sort((a, b) => a - b));
  const scroller = question.node.locator('.cm-scroller');
  expect(
    await scroller.evaluate(node => node.scrollWidth <= node.clientWidth)
  ).toBe(true);
  expect(await page.title()).not.toBe('1');
});

test('code is approved after its end was seen, and blank lines hide none of it', async ({
  page,
  panel,
  desk,
  newAsking
}) => {
  await desk.open([codeCell('mine', 'x = 1')]);
  const agent = await newAsking('long', desk.path);
  const blank = '\n'.repeat(400);
  const tried = await agent.ask(blank, { trial: true });
  await agent.read(tried, 30);
  const question = Question.in(page.locator('.jp-NotebookPanel'));
  const approve = question.button('Approve');
  const code = question.source;

  // Nothing but deleted blank lines was in view, of code that begins after more.
  const revised = `${blank}seen = 1\n${blank}evil = 2`;
  const first = await agent.ask(revised, { revises: tried.id });
  await expect(code.getByText('seen = 1')).toBeInViewport({ ratio: 1 });
  await expect(code.getByText('evil = 2')).toBeInViewport({ ratio: 1 });
  await expect(question.node).toContainText('802 lines, 800 of them blank');
  await expect(question.node.locator('.cm-deletedChunk')).toHaveCount(0);
  await page.screenshot({ path: 'test-results/approval-blank.png' });
  await expect(approve).toBeEnabled();
  await agent.cancel(first);
  await expect(question.node).toBeHidden();

  // More lines than fit: with a button, with a wheel, and with the keyboard.
  const lines = Array.from({ length: 60 }, (_, n) => `x${n} = ${n}`);
  for (const way of ['button', 'wheel', 'keyboard']) {
    const asked = await agent.ask(`${lines.join('\n')}\nevil = "${way}"`);
    await question.tried();
    await expect(question.node).toContainText('61 lines');
    await expect(question.node).toContainText('scroll to the end of the code');
    await expect(approve).toBeDisabled();
    await page.screenshot({ path: `test-results/approval-long-${way}.png` });
    await approve.click({ force: true });
    expect((await agent.read(asked)).status).toBe('awaiting_approval');
    if (way === 'button') {
      await question.button('Show the end of the code').click();
      await expect(code).toBeFocused();
      await expect(approve).toBeEnabled();
      await agent.cancel(asked);
    } else if (way === 'wheel') {
      await code.hover();
      await page.mouse.wheel(0, 3000);
      await expect(approve).toBeEnabled();
      await agent.cancel(asked);
    } else {
      await question.node.focus();
      await tabTo(page, code);
      await page.keyboard.press('PageDown');
      await expect(approve).toBeDisabled();
      await page.keyboard.press('Control+End');
      await expect(approve).toBeEnabled();
      await tabTo(page, approve);
      await page.keyboard.press('Enter');
      expect((await agent.read(asked, 30)).status).toBe('ok');
    }
    await expect(question.node).toBeHidden();
  }
});

// Without windows all cells are drawn before the notebook is there.
for (const [windowingMode, length] of [
  ['full', 2000],
  ['none', 200]
] as const) {
  test.describe(`in windowing mode ${windowingMode}`, () => {
    test.use({
      mockSettings: {
        ...galata.DEFAULT_SETTINGS,
        '@jupyterlab/notebook-extension:tracker': { windowingMode }
      }
    });

    test('all that asks is reached, however far it is', async ({
      page,
      newAsking,
      desk
    }) => {
      const cells = Array.from({ length }, (_, n) =>
        codeCell(`c${n}`, `a = ${n}\nb = ${n}`)
      );
      const notebook = await desk.open(cells);
      const agent = await newAsking('far', desk.path);
      const atEnd = Question.in(
        notebook.page.locator('.jp-NotebookPanel .jp-Notebook')
      );

      const first = await agent.ask('first = 1');
      const show = page
        .locator('.Toastify__toast')
        .getByRole('button', { name: 'Show' });
      await show.click();
      await expect(atEnd.node).toBeFocused();
      await expect(atEnd.button('Approve')).toBeInViewport();
      await expect(page.locator('.Toastify__toast')).toHaveCount(0);
      await agent.cancel(first);
      await expect(atEnd.node).toHaveCount(0);

      // So does it from elsewhere.
      await notebook.activate(0);
      await page.evaluate(async () => {
        await window.jupyterapp.commands.execute('launcher:create');
      });
      await agent.ask('second = 2');
      await show.click();
      await expect(atEnd.node).toBeFocused();
      await expect(atEnd.button('Approve')).toBeInViewport();
      await expect(page.locator('.Toastify__toast')).toHaveCount(0);
    });
  });
}

test.describe('where an agent is approved once for each kernel', () => {
  test.use({ policy: { notebook: 'first' } });

  test('one execution is approved, and the next asks again', async ({
    page,
    newAsking,
    desk
  }) => {
    await desk.open([codeCell('mine', 'x = 1')]);
    const agent = await newAsking('once', desk.path);
    const first = await agent.ask('1');
    const question = Question.in(new Person(page).cell(0));
    await question.tried();
    await expect(question.button('Approve')).toHaveAttribute(
      'title',
      /until the kernel restarts/
    );
    await question.answer('Only this once');
    expect((await agent.read(first, 30)).status).toBe('ok');
    expect((await agent.ask('2')).status).toBe('awaiting_approval');
    await Question.in(new Person(page).cell(1)).answer('Approve');
    expect((await agent.ask('3')).status).not.toBe('awaiting_approval');
  });
});
