/** Whoever sees little, hears the page, or has no mouse can use all of it. */
import { expect } from '@jupyterlab/galata';
import { mergeTests } from '@playwright/test';
import type { Locator, Page } from '@playwright/test';
import { Question, test as approvalTest } from './approval';
import { expectAccessible } from './axe';
import { codeCell, OpenNotebook } from './notebook';
import { leaveDialog, menuOpened, openedDialog, tabTo as tab } from './panel';
import { shown, test as trustTest } from './trust';

const test = mergeTests(approvalTest, trustTest);

test.use({ policy: { notebook: 'none', scratch: 'none' } });

const ENDLESS = 'import time\nwhile True:\n    time.sleep(0.05)';

const LARGE = 'for n in range(2000):\n    print("row", n, "of many")';

/** Two images, which are also active. */
const DRAW = `from IPython.display import SVG, display
for n in (20, 30):
    display(SVG(f'<svg xmlns="http://www.w3.org/2000/svg" width="{n}" height="{n}"><circle r="{n}"/></svg>'))`;

const WRONG = '1 / 0';

/** The keyboard is somewhere, and one sees where. */
async function expectFocus(page: Page): Promise<void> {
  const isSeen = () => page.evaluate(whereFocus);
  // What had it may be gone a moment before what comes instead takes it.
  await expect.poll(isSeen).toBe(true);
}

/** Whether one sees where the keyboard is, or what has it. */
function whereFocus(): boolean | string {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) {
    node = node.shadowRoot.activeElement;
  }
  if (!node || node === document.body) {
    return 'nowhere';
  }
  // A frame around a field is seen as well as one of its own.
  const frames = [node, node.parentElement ?? node].map(each =>
    getComputedStyle(each)
  );
  const isSeen = frames.some(
    ({ boxShadow, outlineStyle }) =>
      outlineStyle !== 'none' || boxShadow !== 'none'
  );
  return isSeen || node.outerHTML.slice(0, 200);
}

/** Lead the keyboard to an element with a key alone, and see it there. */
async function tabTo(
  page: Page,
  to: Locator,
  key: 'Tab' | 'Shift+Tab' = 'Tab'
): Promise<void> {
  await tab(page, to, key);
  await expectFocus(page);
}

test.describe('with a page of its own', () => {
  test.use({ samePage: false });

  test('the panel without sessions, and without a server', async ({
    page,
    panel
  }) => {
    const sessions = '**/api/agent-exec/sessions?**';
    await page.route(sessions, route =>
      route.fulfill({ json: { sessions: [], next_before: null } })
    );
    await panel.open();
    await panel.button('Refresh Agent Activity').click();
    await expect(panel.region).toContainText('No agent has worked here yet');
    await expectAccessible(page);
    await page.route('**/api/agent-exec/**', route => route.abort());
    await panel.button('Refresh Agent Activity').click();
    await expect(panel.region.getByRole('alert')).toBeVisible();
    await expectAccessible(page);
  });
});

test('sessions, cells, reviews, a search, and images', async ({
  page,
  panel,
  server,
  newAsking
}) => {
  const closed = await newAsking('Ended: seen');
  await closed.close();
  const agent = await newAsking('All kinds: seen');
  for (const source of [WRONG, LARGE, DRAW]) {
    await agent.read(await agent.ask(source), 30);
  }
  const running = await agent.ask(ENDLESS);
  await panel.open();
  await newAsking('Nothing: seen');
  await panel.show('Nothing: seen');
  await expect(panel.cell(1)).toContainText('No agent has run anything');
  const size = page.viewportSize()!;
  await page.setViewportSize({ ...size, height: 350 });
  await expectAccessible(page);
  await page.setViewportSize(size);
  await panel.show('All kinds: seen');
  await panel
    .cell(4)
    .getByRole('button', { name: /^Stop “analyst”/ })
    .waitFor();
  await expectAccessible(page);

  const cell = panel.cell(1);
  await panel.choose(1, 'Flag');
  await expect(cell).toContainText('Flagged by');
  await panel.choose(1, 'Comment…');
  await openedDialog(page);
  await expectAccessible(page);
  await leaveDialog(page);

  await expect(panel.cell(2)).toContainText(/Show \w+ \(\d+ kB\)/);
  await expectAccessible(page);
  await panel.region.getByRole('textbox', { name: 'Search all' }).fill('row');
  await expect(panel.region.locator('mark').first()).toBeVisible();
  await expectAccessible(page);
  await panel.region.getByRole('textbox', { name: 'Search all' }).fill('');

  await expect(panel.cell(3).getByRole('img')).toHaveCount(2);
  await expectAccessible(page);
  await agent.cancel(running);
  await agent.read(running, 30);
});

test('what asks, in the panel and in a notebook', async ({
  page,
  panel,
  server,
  desk,
  newAsking
}) => {
  await desk.open([codeCell('mine', 'x = 1')]);
  const agent = await newAsking('Asks: seen', desk.path);
  await agent.read(await agent.ask('print("done")'), 30);
  await server.setPolicy({ notebook: 'always' });
  await agent.ask('!ls\nprint("\u202ehidden")\nx = 2', {
    placement: { cell: 'mine' }
  });
  const question = Question.in(shown(page, 0));
  await expect(question.source).toContainText('x = 2');
  await expectAccessible(page);
  await question.button('Show what differs').click();
  await expect(question.node.getByRole('deletion')).toHaveText('x = 1');
  await expectAccessible(page);

  await panel.open();
  await panel.show('Asks: seen');
  await expect(panel.cell(2)).toContainText('Go to the cell');
  const again = panel.document.getByText('x = 2').filter({ visible: true });
  await expect(again).toHaveCount(0);
  await expectAccessible(page);
  await OpenNotebook.open(page, desk.path);
  // It would cover what is asked, which the panel tells of.
  await expect(
    page.getByRole('button', { name: 'Hide notification' })
  ).toHaveCount(0);
  for (const more of ['Reject…', 'Approve and let it run…']) {
    await expect(question.button(more)).toBeEnabled();
    await question.button(more).click();
    await expect(page.getByRole('dialog')).toBeVisible();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
  }
  await question.answer('Edit');
  await expect(question.button('Discard edits')).toBeEnabled();
  await expectAccessible(page);
  await panel.button('Pause agents').press('Enter');
  await expect(panel.region).toContainText('All agents are paused');
  await expectAccessible(page);
  await panel.button('Resume agents').click();
});

test('all of it is done with keys alone, and the keyboard is never lost', async ({
  page,
  panel,
  newAsking
}) => {
  const agent = await newAsking('By keys');
  await agent.read(await agent.ask(LARGE), 30);
  await agent.read(await agent.ask(DRAW), 30);
  const running = await agent.ask(ENDLESS);
  const { keyboard } = page;
  await keyboard.press('Control+Alt+Shift+,');
  await expect(panel.region).toBeVisible();
  await tabTo(page, panel.session('By keys'));
  await keyboard.press('Enter');
  await panel
    .cell(3)
    .getByRole('button', { name: /^Stop “analyst”/ })
    .waitFor();
  await keyboard.press('ArrowDown');
  await keyboard.press('ArrowDown');
  await expect(panel.cell(3)).toBeFocused();
  await tabTo(page, panel.cell(3).getByRole('button', { name: /^Stop / }));
  await keyboard.press('Enter');
  expect((await agent.read(running, 30)).status).toBe('interrupted');
  await expect(panel.cell(3)).toBeFocused();

  await keyboard.press('ArrowUp');
  await keyboard.press('ArrowUp');
  await expect(panel.cell(1)).toBeFocused();
  await tabTo(page, panel.cell(1).getByRole('button', { name: /^Show Text/ }));
  await keyboard.press('Enter');
  await expect(panel.cell(1)).toContainText('row 1000 of many');
  await expect(panel.cell(1)).toBeFocused();
  const more = panel.cell(1).getByRole('button', { name: 'More actions' });
  await tabTo(page, more);
  await keyboard.press('Enter');
  await menuOpened(page);
  await keyboard.press('F');
  await keyboard.press('Enter');
  await expect(panel.cell(1)).toContainText('Flagged by');
  await expect(more).toBeFocused();
  await keyboard.press('Enter');
  await menuOpened(page);
  await keyboard.press('ArrowUp');
  await keyboard.press('Enter');
  const comment = page.getByRole('dialog');
  await expect(comment.getByRole('textbox')).toBeFocused();
  await keyboard.type('Why so many?');
  await tabTo(page, comment.getByRole('button', { name: 'Save' }));
  await keyboard.press('Enter');
  await expect(comment).toHaveCount(0);
  await expect(panel.cell(1)).toContainText('Why so many?');
  await expectFocus(page);

  const box = panel.region.getByRole('textbox', { name: 'Search all' });
  await keyboard.press('Control+Alt+Shift+,');
  await tabTo(page, box, 'Shift+Tab');
  await keyboard.insertText('row'); // at once: one search
  await expect(panel.region.locator('mark').first()).toBeVisible();
  await keyboard.press('ArrowDown');
  await keyboard.press('Enter');
  await expect(panel.cell(1)).toBeFocused();
  await tabTo(page, panel.button('Pause agents'), 'Shift+Tab');
  await keyboard.press('Enter');
  await expect(panel.region).toContainText('All agents are paused');
  await expect(panel.button('Resume agents')).toBeFocused();
  await expectFocus(page);
  await keyboard.press('Enter');
  await expect(panel.region.getByText('agents are paused')).toBeHidden();
  await expect(panel.button('Pause agents')).toBeFocused();
  await expectFocus(page);
});

test('outputs are accepted and cells are copied with keys alone', async ({
  page,
  panel,
  desk
}) => {
  const { keyboard } = page;
  const notebook = await desk.open([codeCell('mine', 'x = 1')]);
  const sources = async () =>
    (await notebook.cells()).map(({ source }) => source);
  const agent = await desk.attach();
  await agent.run(DRAW);
  await expect.poll(sources).toHaveLength(2);
  const badge = shown(page, 1).getByRole('group', { name: /^Agent / });
  await shown(page, 1).focus();
  await tabTo(page, badge.getByRole('button', { name: 'Accept outputs' }));
  await keyboard.press('Enter');
  await expect(badge).toContainText('Outputs accepted');
  await expect(shown(page, 1)).toBeFocused();

  // From the document, below the cell that is active in the notebook.
  await tabTo(page, badge.getByRole('button', { name: 'Open Agent Session' }));
  await keyboard.press('Enter');
  await expect(panel.cell(1)).toBeFocused();
  const more = panel.cell(1).getByRole('button', { name: /^More actions/ });
  await tabTo(page, more);
  await keyboard.press('Enter');
  await menuOpened(page);
  await keyboard.press('i');
  await keyboard.press('Enter');
  await expect.poll(async () => (await sources()).length).toBe(3);
});

test('nothing is cut or stands out where one reads from the right', async ({
  page,
  panel,
  newAsking
}) => {
  const agent = await newAsking('From the right');
  await agent.read(await agent.ask(WRONG), 30);
  const running = await agent.ask(ENDLESS);
  await page.evaluate(() => (document.documentElement.dir = 'rtl'));
  await panel.open();
  await page.sidebar.setWidth(280, 'right');
  await panel.show('From the right');
  await panel
    .cell(2)
    .getByRole('button', { name: /^Stop “analyst”/ })
    .waitFor();
  const outsideOf = (place: Locator) =>
    place.evaluate(region => {
      const { left, right } = region.getBoundingClientRect();
      // What is too long for its line ends in an ellipsis.
      const isShortened = (node: Element | null): boolean =>
        node !== null &&
        node !== region &&
        (getComputedStyle(node).textOverflow === 'ellipsis' ||
          isShortened(node.parentElement));
      return Array.from(region.querySelectorAll('*'))
        .filter(
          node =>
            node.checkVisibility() &&
            !node.closest('.jp-AgentExec-visuallyHidden, svg, table') &&
            !isShortened(node)
        )
        .map(node => [node.className, node.getBoundingClientRect()] as const)
        .filter(([, place]) => place.left < left - 1 || place.right > right + 1)
        .map(([name]) => name);
    });
  for (const place of [panel.region, panel.about, panel.cell(2)]) {
    expect(await outsideOf(place)).toEqual([]);
  }
  await page.evaluate(() => document.documentElement.removeAttribute('dir'));
  await agent.cancel(running);
});

test('nothing moves for those who asked for that', async ({
  page,
  panel,
  newAsking
}) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  const agent = await newAsking('At rest');
  const running = await agent.ask(ENDLESS);
  await panel.open();
  await panel.show('At rest');
  await panel
    .cell(1)
    .getByRole('button', { name: /^Stop “analyst”/ })
    .waitFor();
  const moving = await page.evaluate(() =>
    document
      .getAnimations()
      .map(each => (each.effect as KeyframeEffect).target?.closest('*'))
      .filter(node => node?.closest('[class*="jp-AgentExec"]'))
      .map(node => node?.className)
  );
  expect(moving).toEqual([]);
  await page.emulateMedia({ reducedMotion: null });
  await agent.cancel(running);
});
