import { expect } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import { test } from './panel';

/** Cells of a long session. */
const MANY = 300;

/** More cells than may ever be drawn at once. */
const FEW = 60;

/** Cells that are read at once. */
const PAGE = 200;

/** The element that scrolls the cells. */
function scroller(feed: Locator): Locator {
  return feed.locator(
    'xpath=ancestor::*[contains(@class, "WindowedPanel-outer")]'
  );
}

/** Scroll to a part of the whole with the wheel. */
async function scrollTo(feed: Locator, part: number): Promise<void> {
  const by = await scroller(feed).evaluate(
    (node, share) =>
      share * (node.scrollHeight - node.clientHeight) - node.scrollTop,
    part
  );
  await scroller(feed).hover();
  await feed.page().mouse.wheel(0, by);
}

/** The first cell in sight, and where its top is. */
function firstInView(feed: Locator): Promise<[string | null, number] | null> {
  return scroller(feed).evaluate(node => {
    const { top } = node.getBoundingClientRect();
    for (const cell of node.querySelectorAll('[role="article"]')) {
      const place = cell.getBoundingClientRect();
      if (place.bottom > top) {
        return [cell.getAttribute('aria-posinset'), Math.round(place.top)];
      }
    }
    return null;
  });
}

/** Wait until all is drawn and at rest; tell the first cell in sight then. */
async function atRest(feed: Locator): Promise<[string | null, number] | null> {
  const drawn = async () => {
    // The feed hears in the next frame that it was scrolled.
    await feed.evaluate(async () => {
      for (let n = 0; n < 30; n++) {
        await new Promise(resolve => requestAnimationFrame(resolve));
      }
    });
    await expect(feed.locator('[aria-busy="true"]')).toHaveCount(0);
    return firstInView(feed);
  };
  let before;
  let now = await drawn();
  do {
    before = now;
    now = await drawn();
  } while (String(now) !== String(before));
  return now;
}

/** Source that puts out a noisy image of 120 × 80 pixels. */
const PICTURE = `
import os, struct, zlib
from IPython.display import Image
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\\0" + os.urandom(360) for _ in range(80))
head = chunk(b"IHDR", struct.pack(">IIBBBBB", 120, 80, 8, 2, 0, 0, 0))
Image(b"\\x89PNG\\r\\n\\x1a\\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
`;

test('cells come wherever one scrolls, and few are drawn', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Scrolled through');
  for (let n = 1; n <= MANY; n++) {
    await agent.run(
      `print("cell", ${n})${n % 7 ? '' : '\nfor i in range(9):\n    print(i)'}`
    );
  }
  await panel.open();
  await panel.session('Scrolled through').click();
  await expect(panel.cell(MANY)).toBeInViewport();
  await expect(panel.cell(MANY)).toContainText(`cell ${MANY}`);
  expect(await panel.cells.count()).toBeLessThan(FEW);

  await scrollTo(panel.feed, 0);
  const first = MANY - PAGE + 1;
  await expect(panel.cell(first)).toBeInViewport();
  await expect(panel.cell(MANY)).toBeHidden();
  await panel.button('Show earlier cells').click();
  await expect(panel.button('Show earlier cells')).toBeHidden();
  await expect(panel.cell(first)).toBeFocused();
  await expect(panel.cell(first)).toBeInViewport();
  // Until all is drawn, the cell that was led to stays in sight.
  await atRest(panel.feed);
  await scrollTo(panel.feed, 0);
  await expect(panel.cell(1)).toBeInViewport();
  await expect(panel.cell(1)).toContainText('cell 1');
  expect(await panel.cells.count()).toBeLessThan(FEW);

  // Those that listen walk from cell to cell.
  await panel.cell(1).focus();
  await page.keyboard.press('End');
  await expect(panel.cell(MANY)).toBeFocused();
  await expect(panel.cell(MANY)).toBeInViewport();
  await page.keyboard.press('PageUp');
  await expect(panel.cell(MANY - 1)).toBeFocused();
  await page.keyboard.press('Home');
  await expect(panel.cell(1)).toBeFocused();
  await expect(panel.cell(1)).toContainText('cell 1');
  await page.keyboard.press('PageDown');
  await expect(panel.cell(2)).toBeFocused();
});

test('what is read stays where it is, and the end is followed from there on', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Growing');
  for (let n = 1; n <= 40; n++) {
    await agent.run(`print("\\n".join(["line"] * ${n % 9}))`);
  }
  await panel.open();
  await panel.session('Growing').click();
  await expect(panel.cell(40)).toBeInViewport();
  await agent.run('"the newest"');
  await expect(panel.cell(41)).toContainText('the newest');
  await expect(panel.cell(41)).toBeInViewport();

  await scrollTo(panel.feed, 0.5);
  const before = await atRest(panel.feed);
  await agent.run('print("out of sight")');
  await expect(panel.session('Growing')).toContainText('42 cells');
  expect(await atRest(panel.feed)).toEqual(before);
  await panel.feed.getByRole('article').first().focus();
  await page.keyboard.press('End');
  await expect(panel.cell(42)).toContainText('out of sight');
});

test('a command leads to a cell however far back it is', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Far');
  const { id } = await agent.run('print("the first of all")');
  for (let n = 2; n <= 120; n++) {
    await agent.run(`${n}`);
  }
  await page.evaluate(
    args => window.jupyterapp.commands.execute('agent-exec:open-panel', args),
    { session_id: agent.sessionId, execution_id: id }
  );
  await expect(panel.cell(1)).toBeFocused();
  await expect(panel.cell(1)).toContainText('the first of all');
  await expect(panel.cell(1)).toBeInViewport();
});

test('a large output is opened on demand', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Opened on demand');
  await agent.run('for n in range(2000):\n    print("row", n, "of many")');
  await agent.run('"the last"');
  await panel.open();
  await panel.session('Opened on demand').click();
  const cell = panel.cell(1);
  await expect(cell).toContainText(/Show Text \(\d+ kB\)/);
  await expect(cell).not.toContainText('row 1000 of many');
  await cell.getByRole('button', { name: /Show Text/ }).focus();
  await page.keyboard.press('Enter');
  await expect(cell).toContainText('row 1000 of many');
  await expect(cell).toBeFocused();
});

test('images have their place before they come, and an SVG is only an image', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Pictures');
  await agent.run(PICTURE);
  await agent.run(
    'from IPython.display import SVG\n' +
      'SVG(\'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" onload="window.fired = 1"><rect width="40" height="20"/><script>window.fired = 2</script></svg>\')'
  );
  await page.route('**/api/agent-exec/blobs/**', async route => {
    await expect(panel.cell(1).getByRole('img')).toHaveAttribute(
      'width',
      '120'
    );
    await route.continue();
  });
  // In little room, the first image is out of sight at the end.
  const size = page.viewportSize()!;
  await page.setViewportSize({ ...size, height: 600 });
  await panel.open();
  await panel.session('Pictures').click();
  const image = panel.cell(1).getByRole('img');
  await expect(panel.cell(2)).toBeInViewport();
  await expect(image).not.toBeInViewport();
  await expect(image).toHaveAttribute('height', '80');
  await expect(image).toHaveAttribute('alt', 'Image output of the cell');
  await expect(image).toHaveAttribute('src', /^blob:/);
  await page.setViewportSize(size);
  const drawing = panel.cell(2).getByRole('img');
  await expect(drawing).toHaveAttribute('src', /^data:image\/svg\+xml/);
  await expect(panel.cell(2).locator('svg[onload], svg rect')).toHaveCount(0);
  expect(await page.evaluate(() => 'fired' in window)).toBe(false);
});
