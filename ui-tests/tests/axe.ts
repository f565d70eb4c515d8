/** What a person with poor sight or a screen reader would stumble over. */
import { readFile } from 'node:fs/promises';
import { expect } from '@jupyterlab/galata';
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';
import type { AxeResults } from 'axe-core';

/** The themes that come with JupyterLab. */
const THEMES = [
  'JupyterLab Dark',
  'JupyterLab Dark High Contrast',
  'JupyterLab Light'
];

/** What this extension draws, wherever it is. */
const OURS =
  ':is([class^="jp-AgentExec"], [class*=" jp-AgentExec"])' +
  ':not(.jp-Cell, .jp-Notebook, .lm-Menu)';

/** What agents put out is theirs, and JupyterLab draws code. */
const NOT_OURS = ['.jp-OutputArea-output', '.jp-InputArea-editor'];

/** The rules that a theme may break. */
const OF_COLOUR = ['color-contrast', 'link-in-text-block'];

/** Look at all that is ours and in sight, and at its colours in each theme. */
export async function expectAccessible(
  page: IJupyterLabPageFixture
): Promise<void> {
  const now = await page.theme.getTheme();
  expect.soft(await violations(page), now).toEqual([]);
  for (const theme of THEMES.filter(each => each !== now)) {
    await setTheme(page, theme);
    expect.soft(await violations(page, OURS, OF_COLOUR), theme).toEqual([]);
  }
}

/**
 * Show a theme, with the focus where it was.
 *
 * JupyterLab hides itself for a frame then, in which the focus may be lost.
 */
async function setTheme(
  page: IJupyterLabPageFixture,
  theme: string
): Promise<void> {
  const focused = await page.evaluateHandle(() => document.activeElement);
  await page.theme.setTheme(theme);
  await focused.evaluate(node => {
    if (node instanceof HTMLElement) {
      node.focus({ preventScroll: true });
    }
  });
}

/** What axe finds, with a text for each element. */
export async function violations(
  page: Page,
  inside = OURS,
  rules?: string[]
): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) {
    // A page without scripts allows no tag of one.
    const axe = require.resolve('axe-core/axe.min.js');
    await page.evaluate(await readFile(axe, 'utf8'));
  }
  const found = await page.evaluate(
    ([ours, notOurs, rules]) => {
      const { axe } = window as unknown as {
        axe: { run: (...args: object[]) => Promise<AxeResults> };
      };
      // Colours on their way from one theme to the other are of neither.
      for (const animation of document.getAnimations()) {
        if (animation.effect?.getTiming().iterations !== Infinity) {
          animation.finish();
        }
      }
      const include = Array.from(document.querySelectorAll(ours)).filter(
        node => node.checkVisibility() && !node.parentElement?.closest(ours)
      );
      const options = { iframes: false, ...(rules && { runOnly: rules }) };
      return axe.run({ include, exclude: notOurs }, options);
    },
    [inside, NOT_OURS, rules] as const
  );
  if (!rules) {
    expect(found.passes.length, 'what axe looked at').toBeGreaterThan(0);
  }
  return found.violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(each => `${impact} ${id}: ${each.html} ${each.failureSummary}`)
  );
}
