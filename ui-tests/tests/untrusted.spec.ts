/** Whatever agents write, it stays harmless wherever a person looks at it. */
import { expect } from '@jupyterlab/galata';
import type { Locator, Page } from '@playwright/test';
import { COVER, payloadCode, shown as displayed } from './attempt';
import type { Listener } from './listener';
import { codeCell, OpenNotebook } from './notebook';
import { leaveDialog } from './panel';
import { PAYLOADS } from './payloads';
import { runAsPerson, shown } from './trust';
import type { IDesk } from './trust';
import type { Watch } from './watch';
import { command, test, toCell } from './watched';

/** How many executions are asked for before the last of them is awaited. */
const AT_ONCE = 12;

// There are many, and machines with few cores draw them slowly.
test.setTimeout(1_200_000);

/** Whether all of a cell is drawn, and in sight. */
function isInSight(cell: Locator): Promise<boolean> {
  return cell.evaluateAll(async ([node]) => {
    if (
      !node ||
      node.matches(':has(.jp-Placeholder:not(.jp-InputPlaceholder))')
    ) {
      return false;
    }
    const ratio = await new Promise<number>(resolve => {
      const observer = new IntersectionObserver(([{ intersectionRatio }]) => {
        observer.disconnect();
        resolve(intersectionRatio);
      });
      observer.observe(node);
    });
    return ratio > 0.99;
  });
}

/** A place where all payloads are shown. */
interface IPlace {
  what: string;
  cell: (index: number) => Locator;
  show: (index: number) => Promise<void>;
  open?: (cell: Locator) => Promise<void>;
}

/** Click on all payloads in a place, and look at as many at once as fit. */
async function lookThrough(
  page: Page,
  watch: Watch,
  place: IPlace
): Promise<void> {
  // More outputs fit, and no editor has to be laid out at each click.
  await command(page, 'notebook:hide-all-cell-code', {});
  for (const [index, { name }] of PAYLOADS.entries()) {
    const cell = place.cell(index);
    // What is drawn above a cell may take it out of sight again.
    await expect(async () => {
      if (!(await isInSight(cell))) {
        // Before those that are in sight go.
        await watch.look();
        await place.show(index);
      }
      watch.at(`${name} in ${place.what}`);
      await place.open?.(cell);
      await watch.click(cell);
    }).toPass();
  }
  await watch.look();
}

/** Run all payloads as an agent in the notebook, some at a time. */
async function runAll(
  desk: IDesk,
  { address }: Listener
): Promise<{ ids: string[]; session: string }> {
  const agent = await desk.attach();
  const ids: string[] = [];
  for (const payload of PAYLOADS) {
    const { id } = await agent.begin(payloadCode(payload, address));
    ids.push(id);
    if (ids.length % AT_ONCE === 0) {
      await agent.via(id);
    }
  }
  // What follows ends after all of them.
  return { ids, session: (await desk.run(agent, '"end"')).session_id };
}

/** Open all that a cell of the document has to open. */
async function open(cell: Locator): Promise<void> {
  const shows = cell.getByRole('button', { name: /^Show .* \(.*\)$/ });
  while ((await shows.count()) > 0) {
    // What was clicked on goes when its output has come.
    await shows.first().click({ timeout: 5000 });
  }
}

test('there are enough attempts, and each has a name of its own', () => {
  const names = PAYLOADS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThan(100);
});

test('what is active is noticed: all that a person has run is', async ({
  desk,
  page,
  watch,
  listener
}) => {
  const html = `<script>FIRE</script><img src="URL"><div style="${COVER}"></div>`;
  const code = payloadCode(
    { name: 'own', code: displayed('text/html')(html) },
    listener.address
  );
  const notebook = await desk.open([codeCell('mine', code)]);
  await watch.begin();
  await runAsPerson(notebook, 0);
  await expect.poll(() => listener.heard).toContain('GET /own HTTP/1.1');
  watch.at('here');
  const found = (await watch.end()).join('\n');
  for (const what of [
    'here: runs "own"',
    'here: holds <script>',
    /here: is seen outside: <div style="position: fixed/,
    /asks for http:.*\/own/,
    'sends GET /own'
  ]) {
    expect(found).toMatch(what);
  }
});

test('a link that an agent wrote says where it leads, and waits', async ({
  desk,
  page,
  panel,
  listener
}) => {
  const address = `http://${listener.address}/link`;
  const notebook = await desk.open([codeCell('mine', 'x = 1')]);
  const { id, session_id } = await desk.run(
    await desk.attach(),
    `print("${address}")`
  );
  await panel.open();
  const place = { session_id, execution_id: id };
  await command(page, 'agent-exec:open-panel', place);
  const dialog = page.locator('.jp-Dialog');
  const links = [panel.cell(1), shown(page, 1)].map(each =>
    each.getByRole('link', { name: address })
  );
  for (const link of links) {
    await link.click();
    await expect(dialog).toContainText(address);
    await leaveDialog(page);
    await OpenNotebook.open(page, desk.path);
  }
  expect(page.context().pages()).toHaveLength(1);
  expect(listener.heard).toEqual([]);
  await links[1].focus();
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Open' }).click();
  await expect.poll(() => listener.heard).toContain('GET /link HTTP/1.1');
  // What the person ran themselves, they open as any link.
  await runAsPerson(notebook, 1);
  await expect(shown(page, 1).getByText('Run again since')).toBeVisible();
  const heard = listener.heard.length;
  await links[1].click();
  await expect.poll(() => listener.heard.slice(heard)).not.toEqual([]);
  await expect(dialog).toHaveCount(0);
});

test('nothing that an agent puts out is active, wherever it is looked at', async ({
  desk,
  page,
  panel,
  watch,
  listener
}) => {
  await desk.open([]);
  await panel.open();
  const { ids, session } = await runAll(desk, listener);
  await watch.begin();
  await lookThrough(page, watch, {
    what: 'a notebook',
    cell: index => shown(page, index),
    show: index => toCell(page, index)
  });
  const place = { session_id: session, execution_id: ids[0] };
  await command(page, 'agent-exec:open-panel', place);
  await expect(panel.cell(1)).toBeFocused();
  await lookThrough(page, watch, {
    what: 'a document of the session',
    cell: index => panel.cell(index + 1),
    show: index => toCell(page, index),
    open
  });
  expect(await watch.end()).toEqual([]);
});
