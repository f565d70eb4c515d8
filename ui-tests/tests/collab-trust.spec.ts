/** What people who share a notebook trust of an agent's outputs. */
import { expect } from '@jupyterlab/galata';
import { codeCell, OpenNotebook } from './notebook';
import {
  canary,
  python,
  ran,
  runAsPerson,
  shown,
  test,
  trusted,
  trustedInFile
} from './trust';

const active = (name: string) =>
  `from IPython.display import Javascript\nJavascript(${python(canary(name))})`;

test('what is held is held for two people; what one accepts is active for both, and stays so', async ({
  desk,
  page,
  browser,
  request,
  baseURL
}) => {
  const notebook = await desk.open([codeCell('mine', active('mine'))]);
  const context = await browser.newContext();
  const other = await context.newPage();
  await other.goto(`${baseURL}/lab/workspaces/other/tree/${desk.path}`);
  await expect(shown(other, 0)).toBeVisible();
  const both = [notebook, new OpenNotebook(other, desk.path)];
  await runAsPerson(notebook, 0);
  const agent = await desk.attach();
  const held = await desk.run(agent, active('accepted'));
  await desk.run(agent, active('held'));
  expect(held).toMatchObject({ via: 'collaboration', outputs: 'held' });
  for (const each of both) {
    await expect(shown(each.page, 2)).toContainText('Javascript object');
    await expect(shown(each.page, 1)).toContainText('Javascript object');
    expect(await ran(each.page)).not.toContain('accepted');
  }
  await shown(other, 1).getByRole('button', { name: 'Accept outputs' }).click();
  for (const each of both) {
    await expect.poll(() => ran(each.page)).toContain('accepted');
    await expect(shown(each.page, 1)).toContainText('Outputs accepted');
  }
  await context.close();
  await notebook.save();
  const all = [true, true, true];
  await expect
    .poll(() => trustedInFile(request, baseURL!, desk.path))
    .toEqual(all);
  await desk.reopen();
  await expect.poll(() => ran(page)).toEqual(['accepted', 'mine']);
  expect(await trusted(notebook)).toEqual(all);
});
