import { expect } from '@jupyterlab/galata';
import { test } from './panel';

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

test('who is at the last cell goes on with the agent, and others stay', async ({
  panel,
  newAgent
}) => {
  const agent = await newAgent('Growing');
  for (let n = 1; n <= 20; n++) {
    await agent.run(`print("\\n".join(["line"] * ${n % 9}))`);
  }
  await panel.open();
  await panel.show('Growing');
  await panel.cell(20).locator('.jp-InputArea-prompt').click();
  await agent.run('"the newest"');
  await expect(panel.cell(21)).toContainText('the newest');
  await expect(panel.cell(21)).toHaveClass(/jp-mod-active/);
  await expect(panel.cell(21)).toBeInViewport();
  await panel.cell(3).locator('.jp-InputArea-prompt').click();
  await agent.run('print("out of sight")');
  await expect(panel.session('Growing')).toContainText('22 cells');
  await expect(panel.cell(3)).toHaveClass(/jp-mod-active/);
  await expect(panel.cell(3)).toBeInViewport();
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
  await panel.open();
  await panel.show('Pictures');
  const image = panel.cell(1).getByRole('img');
  await expect(image).toHaveAttribute('height', '80');
  await expect(image).toHaveAttribute('alt', 'Image output of the cell');
  await expect
    .poll(() => image.evaluate(node => (node as HTMLImageElement).naturalWidth))
    .toBe(120);
  const drawing = panel.cell(2).getByRole('img');
  await expect
    .poll(() =>
      drawing.evaluate(node => (node as HTMLImageElement).naturalWidth)
    )
    .toBe(40);
  await expect(panel.cell(2).locator('svg[onload], svg rect')).toHaveCount(0);
  expect(await page.evaluate(() => 'fired' in window)).toBe(false);
});

test('an image is shown large, leads to others, and is saved', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Large');
  await agent.run(PICTURE);
  await agent.run('"no image"');
  await agent.run(PICTURE);
  await panel.open();
  await panel.show('Large');
  const dialog = page.getByRole('dialog');
  await panel.cell(1).getByRole('img').click();
  const image = dialog.getByRole('img', { name: 'Image output of the cell' });
  await expect(dialog.getByRole('status')).toHaveText('[1] · image 1 of 2');
  const first = await image.getAttribute('src');
  const { height } = (await image.boundingBox())!;
  expect(height).toBeGreaterThan(page.viewportSize()!.height / 2);
  await page.keyboard.press('ArrowRight');
  await expect(dialog.getByRole('status')).toHaveText('[3] · image 2 of 2');
  await expect(image).not.toHaveAttribute('src', first!);
  const download = page.waitForEvent('download');
  await dialog.getByRole('button', { name: 'Save image' }).click();
  expect((await download).suggestedFilename()).toBe(
    'Agent session Large [3].png'
  );

  // By the keyboard alone, in the menu of the cell; one without images lacks it.
  await panel.choose(3, 'Enlarge Image');
  await expect(dialog.getByRole('status')).toHaveText('[3] · image 2 of 2');
  await page.keyboard.press('ArrowLeft');
  await expect(image).toHaveAttribute('src', first!);
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await panel.cell(2).getByRole('button', { name: 'More actions' }).click();
  const menu = page.locator('.jp-AgentExecMenu');
  await expect(menu.getByText('Copy Source')).toBeVisible();
  await expect(menu.getByText('Enlarge Image')).toBeHidden();
  await page.keyboard.press('Escape');
});
