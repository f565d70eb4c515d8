import { expect } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import { leaveDialog, test } from './panel';
import type { Panel } from './panel';

/** Draws a square of a colour, as a plot does. */
const DRAW =
  'import struct, zlib\n' +
  'from IPython.display import Image, display\n' +
  'def square(colour, size=64):\n' +
  '    def chunk(kind, data):\n' +
  '        crc = struct.pack(">I", zlib.crc32(kind + data))\n' +
  '        return struct.pack(">I", len(data)) + kind + data + crc\n' +
  '    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)\n' +
  '    rows = (b"\\0" + bytes(colour) * size) * size\n' +
  '    png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head)\n' +
  '    png += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")\n' +
  '    display(Image(png))\n';

/** A drawing with what must not come to life. */
const SVG =
  'from IPython.display import SVG\n' +
  'SVG(\'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" \' +\n' +
  '    \'onload="parent.fired = 1"><script>parent.fired = 2</script>\' +\n' +
  '    \'<circle r="20" cx="20" cy="20" fill="teal"/></svg>\')';

/** The panel's search box. */
function box(panel: Panel): Locator {
  return panel.region.getByRole('textbox', { name: 'Search all' });
}

/** The cells that match. */
function hits(panel: Panel): Locator {
  return panel.region
    .getByRole('listbox', { name: 'Search results' })
    .getByRole('option');
}

/** The images of the session, by the names of their buttons. */
function thumbnails(panel: Panel): Locator {
  return panel.region.getByRole('button', { name: /^Image of / });
}

test('a search finds what an old session printed, and leads to its cell', async ({
  page,
  panel,
  newAgent
}) => {
  const old = await newAgent('Search: old');
  for (const n of [1, 2, 3]) {
    await old.run(`print("quokka", ${n})`);
  }
  await old.run('print("a wombat among " + "quok" + "kas")');
  await old.close();
  await newAgent('Search: new');
  await panel.open();
  await panel.session('Search: new').click();

  await box(panel).pressSequentially('wombat', { delay: 10 });
  await expect(hits(panel)).toHaveCount(1);
  await expect(hits(panel).locator('mark')).toHaveText(['wombat']);
  await expect(hits(panel)).toContainText('“Search: old” · cell 4');
  await expect(hits(panel)).toContainText('analyst');
  await expect(hits(panel)).toContainText('Done');
  await expect(panel.region.getByRole('status').first()).toHaveText(
    '1 cell matches'
  );

  await box(panel).fill('quokka');
  await expect(hits(panel)).toHaveCount(4);
  await page.keyboard.press('ArrowDown');
  await expect(hits(panel).first()).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await expect(hits(panel).nth(1)).toContainText('cell 3');
  await expect(hits(panel).nth(1)).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(panel.cell(3)).toBeFocused();
  await expect(panel.cell(3)).toContainText('quokka 3');
  await expect(hits(panel).nth(1)).toHaveAttribute('aria-selected', 'true');

  // In a small window, matches and cell are in view.
  const size = page.viewportSize()!;
  for (const [width, height] of [
    [1024, 700],
    [512, 350]
  ]) {
    await page.setViewportSize({ width, height });
    // JupyterLab lays out some time after the window has another size.
    await expect(async () => {
      const timeout = 1000;
      const hit = hits(panel).nth(1);
      await hit.scrollIntoViewIfNeeded();
      await expect(hit).toBeInViewport({ ratio: 1, timeout });
      const output = panel.cell(3).getByText('quokka 3');
      await output.scrollIntoViewIfNeeded();
      await expect(output).toBeInViewport({ timeout });
    }).toPass();
    const overlaps = () =>
      panel.region.evaluate(region => {
        const parts = Array.from(
          region.querySelectorAll(
            '.jp-SidePanel-header, .jp-SidePanel-toolbar, .jp-AccordionPanel-title, .jp-AgentExecSessions, .jp-AgentExecCells'
          ),
          each => each.getBoundingClientRect()
        ).filter(each => each.height > 0);
        return parts.flatMap((a, at) =>
          parts
            .slice(at + 1)
            .filter(b => a.top < b.bottom - 1 && b.top < a.bottom - 1)
        ).length;
      });
    await expect.poll(overlaps).toBe(0);
  }
  await page.setViewportSize(size);

  await hits(panel).nth(1).focus();
  await page.keyboard.press('Escape');
  await expect(box(panel)).toBeFocused();
  await expect(box(panel)).toHaveValue('');
  await expect(panel.session('Search: old')).toHaveAttribute(
    'aria-selected',
    'true'
  );
});

test('a search without a match, and with a server that fails', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Search: by status');
  await agent.run('raise RuntimeError("platypus")');
  await panel.open();
  await box(panel).fill('platypus');
  await expect(hits(panel)).toHaveText([/RuntimeError/]);
  await box(panel).fill('platypus egg');
  await expect(panel.region).toContainText('No cell matches');
  await page.route('**/api/agent-exec/search?**', route =>
    route.fulfill({
      status: 503,
      json: { message: 'It is read again.', code: 'history_unavailable' }
    })
  );
  await box(panel).fill('platypus again');
  const alert = panel.region.getByRole('alert');
  await expect(alert).toContainText('It is read again.');
  await page.unroute('**/api/agent-exec/search?**');
  await alert.getByRole('button', { name: 'Try again' }).click();
  await expect(panel.region).toContainText('No cell matches');
  await expect(box(panel)).toBeFocused();
  await panel.button('Clear the search').click();
  await expect(panel.session('Search: by status')).toBeVisible();
});

test('the row of images shows them in full size, saves them and leads to their cells', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Gallery: a/b');
  await agent.run(`${DRAW}square((200, 60, 60))`);
  await agent.run('square((60, 160, 60), 900)');
  await agent.run(SVG);
  await panel.open();
  await panel.session('Gallery').click();
  await expect(thumbnails(panel)).toHaveCount(3);
  await expect(thumbnails(panel).nth(2).locator('img')).toHaveAttribute(
    'src',
    /^data:image\/svg\+xml/
  );

  await thumbnails(panel).first().focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  const image = (name: string) => dialog.getByRole('img', { name });
  await expect(image('Cell 1 of “Gallery: a/b”')).toBeVisible();
  await leaveDialog(page);
  await expect(thumbnails(panel).first()).toBeFocused();
  await thumbnails(panel).nth(1).click();
  await expect(image('Cell 2 of “Gallery: a/b”')).toBeInViewport({ ratio: 1 });

  const downloading = page.waitForEvent('download');
  await dialog.getByRole('button', { name: 'Save' }).click();
  expect((await downloading).suggestedFilename()).toBe(
    'Gallery a b cell 2 output 1.png'
  );
  await expect(dialog).toHaveCount(0);
  await thumbnails(panel).nth(1).click();
  await dialog.getByRole('button', { name: 'Go to the cell' }).click();
  await expect(panel.cell(2)).toBeFocused();
  expect(await page.evaluate(() => 'fired' in window)).toBe(false);
});

test('a session without images has no row of them, and one that is far is read late', async ({
  panel,
  newAgent
}) => {
  const agent = await newAgent('Images: many');
  await agent.run(`${DRAW}for n in range(90):\n    square((n, 0, 0), 8)`);
  await newAgent('Images: none');
  await panel.open();
  await panel.session('Images: none').click();
  await expect(panel.region).toContainText(
    'No agent has run anything in this session'
  );
  await expect(panel.region.getByRole('list', { name: 'Images' })).toBeHidden();
  await panel.session('Images: many').click();
  await expect(thumbnails(panel)).toHaveCount(90);
  const read = (item: Locator) => item.locator('img[src]');
  await expect(read(thumbnails(panel).first())).toBeVisible();
  await expect(read(thumbnails(panel).last())).toHaveCount(0);
  await thumbnails(panel).last().scrollIntoViewIfNeeded();
  await expect(read(thumbnails(panel).last())).toBeVisible();
});
