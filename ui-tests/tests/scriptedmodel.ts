/** The scripted model of tests/mcp/agents, and what a person decides on what it wants to draw. */
import { expect } from '@playwright/test';
import type { Page } from '@playwright/test';
import { Question } from './approval';
import { Process } from './process';

/** What it says at the end. */
export const SEEN = 'I see 40 x 30 in #2e8b57.';

/** Start it; its address is its first line. */
export function scriptedModel(): Process {
  const python = { ...process.env, PYTHONUNBUFFERED: '1' };
  return new Process(
    'python',
    ['-m', 'tests.mcp.agents.scripted_model'],
    python
  );
}

/** Reject its picture with a reason, and approve the one that heeds it. */
export async function correctPicture(page: Page): Promise<void> {
  const panel = page.locator('.jp-NotebookPanel:visible');
  const question = Question.in(panel);
  const asks = async (colour: string) =>
    expect
      .poll(async () => (await question.lines()).at(-1))
      .toBe(`Picture.new('RGB', (40, 30), '${colour}')`);
  await asks('#ff0000');
  await question.answer('Reject…');
  const reason = page.getByRole('textbox', { name: /^Reason/ });
  await reason.fill('Not in red, in #2e8b57, please.');
  await reason.press('Enter');
  await asks('#2e8b57');
  await question.answer('Approve');
  await expect(panel.locator('.jp-Cell img')).toHaveCount(1);
}
