/** The parts of this extension's program that a page loads when it needs them. */
import type { Page } from '@playwright/test';

/** Hold them until the answer is called. */
export async function holdScripts(page: Page): Promise<() => void> {
  let release = () => {};
  const held = new Promise<void>(resolve => (release = resolve));
  await page.route('**/extensions/jupyter-agent-exec/static/*', async route => {
    await held;
    await route.continue();
  });
  return release;
}
