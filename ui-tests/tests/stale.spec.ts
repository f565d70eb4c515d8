/** A person sees which cells do not fit what an agent has made of their variables. */
import { expect } from '@jupyterlab/galata';
import { expectAccessible } from './axe';
import { codeCell, NotebookAgent } from './notebook';
import { runAsPerson, shown, test } from './trust';

test('a cell is marked once an agent changed what it read, until it runs again', async ({
  desk,
  page
}) => {
  const notebook = await desk.open([
    codeCell('mine', 'df = [1, 2]'),
    codeCell('plot', "print('▇' * sum(df))"),
    codeCell('other', 'other = 1')
  ]);
  const agent = await desk.attach();
  for (const index of [0, 1, 2]) {
    await runAsPerson(notebook, index);
  }
  const cell = shown(page, 1);
  const before = await cell.boundingBox();
  await desk.run(agent, 'df = [3]');
  const mark = cell.getByRole('button', {
    name: 'Out of date: [4] changed df'
  });
  await expect(mark).toBeVisible();
  expect(await cell.boundingBox()).toEqual(before);
  await expect(page.locator('.jp-AgentExecStale')).toHaveCount(1);
  await expectAccessible(page);
  await page.screenshot({ path: test.info().outputPath('stale.png') });
  await mark.focus();
  await page.keyboard.press('Enter');
  await expect(page.locator('.Toastify__toast')).toContainText(
    'Out of date: [4] changed df'
  );
  await runAsPerson(notebook, 1);
  await expect(mark).toBeHidden();
});

test('an agent in another notebook is no reason to ask what ran here', async ({
  baseURL,
  desk,
  page,
  request,
  tmpPath
}) => {
  const notebook = await desk.open([codeCell('mine', 'df = [1, 2]')]);
  const agent = await desk.attach();
  await runAsPerson(notebook, 0);
  const elsewhere = `${tmpPath}/elsewhere.ipynb`;
  await desk.files.write(elsewhere, [codeCell('theirs', 'x = 1')]);
  const known = page.waitForResponse(
    async response =>
      response.url().includes('agent-exec/approvals') &&
      (await response.text()).includes(elsewhere)
  );
  const other = await NotebookAgent.open(request, baseURL!, elsewhere);
  await known;
  // Until now the page could not know that it works elsewhere.
  await other.run('import time; time.sleep(1)');
  const asked: string[] = [];
  page.on('request', each => {
    asked.push(...(each.url().match(/kernels\/[^/]*\/runs/) ?? []));
  });
  for (let count = 0; count < 5; count++) {
    await other.run('time.sleep(0.3)');
  }
  expect(asked).toEqual([]);
  await desk.run(agent, 'df = [3]');
  await expect.poll(() => asked.length).toBeGreaterThan(0);
  await other.close();
});
