/** What an earlier release has left: its history, and cells in a notebook. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { errorsOfOurs, openLab, test as base } from './lab';
import { codeCell, Files } from './notebook';
import { OwnServer } from './ownserver';
import { leaveDialog } from './panel';
import { Person } from './person';

/** Written when there were neither reviews nor approvals. */
const HISTORY = join(__dirname, '../../tests/journal/history_with_index_1.zip');

/** A cell as that release left it in the notebook. */
const CELL = {
  ...codeCell('x_01M7ZHJVCRWQGQXVVHGBWTQPV3', 'plot()'),
  execution_count: 1,
  metadata: {
    agent_exec: {
      session_id: 's_01M7ZHJVB6CM92264ZPJX2V4P8',
      execution_id: 'x_01M7ZHJVCRWQGQXVVHGBWTQPV3',
      seq: 1,
      agent: { name: 'analyst', version: null, model: null },
      username: 'ada',
      status: 'ok',
      accepted_at: '2026-11-21T09:00:00.000Z',
      started_at: '2026-11-21T09:00:00.000Z',
      finished_at: '2026-11-21T09:00:00.000Z',
      execution_count: 1,
      outputs: 'accepted'
    }
  }
};

const test = base.extend<{ ownServer: OwnServer }>({
  ownServer: async ({}, use) => {
    const server = await OwnServer.prepare();
    const history = join(server.folder, 'history');
    execFileSync('python', ['-m', 'zipfile', '-e', HISTORY, history]);
    await server.start();
    await use(server);
    await server.remove();
  }
});

test('what an earlier release recorded is shown, found and reviewed', async ({
  ownServer,
  page,
  request,
  workspace
}) => {
  const errors = errorsOfOurs(page);
  const { url } = ownServer;
  await new Files(request, url).write('a.ipynb', [CELL]);
  const panel = await openLab(page, url, workspace, 'a.ipynb');
  const inNotebook = new Person(page).badge(0);
  await expect(inNotebook).toContainText('analyst');
  await expect(inNotebook).toContainText('Done');

  await panel.open();
  await panel.session('Sales').click();
  await expect(panel.session('Sales')).toContainText('2 unreviewed');
  await expect(panel.cell(1)).toContainText('plot()');
  const review = panel.cell(1).getByRole('group', { name: /^Review of/ });
  await review.getByRole('button', { name: 'Reviewed' }).click();
  await expect(review).toContainText('Reviewed by');
  await expect(panel.session('Sales')).toContainText('1 unreviewed');
  await expect(inNotebook).toContainText('Reviewed by');
  const failed = panel.cell(2);
  await expect(failed).toHaveAccessibleName('Cell 2: Error');
  await failed.getByRole('button', { name: /^Show Traceback/ }).click();
  await expect(failed).toContainText('x'.repeat(100));

  await panel.region
    .locator('.jp-AccordionPanel-title', { hasText: 'Images' })
    .click();
  await panel.button(/^Image of /).click();
  await expect(
    page.getByRole('dialog').getByRole('img', { name: /^Cell 1/ })
  ).toBeVisible();
  await leaveDialog(page);

  await panel.button('Open Agent Session as Notebook').click();
  const shown = page.locator('.jp-NotebookPanel:visible');
  await expect(shown.locator('.jp-CodeCell')).toHaveCount(2);

  await panel.region.getByRole('textbox', { name: 'Search all' }).fill('plot');
  await expect(
    panel.region
      .getByRole('listbox', { name: 'Cells that match' })
      .getByRole('option')
  ).toHaveText([/plot\(\)/]);
  expect(errors).toEqual([]);
});
