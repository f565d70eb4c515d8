/** The pictures in the documentation. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect } from '@playwright/test';
import type { Page } from '@playwright/test';

const IMAGES = path.join(__dirname, '..', '..', 'docs', 'images');

/** Keep a picture of the page where the documentation wants it. */
export async function keep(page: Page, name: string): Promise<void> {
  if (process.env.UPDATE_SCREENSHOTS) {
    await page.screenshot({
      path: path.join(IMAGES, `${name}.png`),
      animations: 'disabled'
    });
  }
}

/** Keep a picture of the page in each theme. */
export async function keepInThemes(page: Page, name: string): Promise<void> {
  if (process.env.UPDATE_SCREENSHOTS) {
    for (const theme of ['Dark', 'Light']) {
      const args = { theme: `JupyterLab ${theme}` };
      await page.evaluate(
        args =>
          window.jupyterapp.commands.execute('apputils:change-theme', args),
        args
      );
      await page
        .locator(`body[data-jp-theme-name="${args.theme}"]`)
        .waitFor({ state: 'attached' });
      // No answer is taken for a moment after the page was hidden.
      const held =
        '.jp-AgentExecApproval-actions:not([aria-busy="true"]) [aria-disabled="true"]';
      await expect(page.locator(held)).toHaveCount(0);
      await keep(page, `${name}-${theme.toLowerCase()}`);
    }
  }
}

/** Draws columns without a library for plots. */
export const SKETCH = `import math, struct, zlib
from IPython.display import Image

def sketch(values, width=300, height=90):
    low, high = min(values), max(values)
    tops = [
        round((values[x * len(values) // width] - low) / (high - low) * height)
        for x in range(width)
    ]
    pixels = b"".join(
        b"\\0" + bytes(90 if top >= height - y else 235 for top in tops)
        for y in range(height)
    )

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return Image(
        b"\\x89PNG\\r\\n\\x1a\\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(pixels))
        + chunk(b"IEND", b"")
    )`;

/** An animated picture for the documentation. */
export class Film {
  private readonly _frames: { seconds: number; path: string }[] = [];

  constructor(
    private readonly _page: Page,
    private readonly _folder: string
  ) {}

  /** Show the page as it is now for some seconds. */
  async show(seconds: number): Promise<void> {
    if (process.env.UPDATE_SCREENSHOTS) {
      const name = `${this._frames.length}.png`;
      const frame = { seconds, path: path.join(this._folder, name) };
      await this._page.screenshot({ path: frame.path, animations: 'disabled' });
      this._frames.push(frame);
    }
  }

  /** Keep it where the documentation wants it. */
  keep(name: string): void {
    if (process.env.UPDATE_SCREENSHOTS) {
      execFileSync('python', [
        path.join(__dirname, '..', 'animate.py'),
        path.join(IMAGES, `${name}.webp`),
        ...this._frames.map(({ seconds, path }) => `${seconds}:${path}`)
      ]);
    }
  }
}
