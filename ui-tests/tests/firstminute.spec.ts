/** What the README and the tutorial promise: an agent in the notebook that you have open. */
import { expect } from '@jupyterlab/galata';
import { Question, test } from './approval';
import { codeCell, Files, OpenNotebook } from './notebook';
import { Person } from './person';
import { Process } from './process';

test.use({ policy: { notebook: 'first' } });

test('an MCP client signs in, and works in the open notebook once its user approves', async ({
  page,
  server,
  request,
  baseURL,
  tmpPath
}) => {
  expect(await server.send('get', 'approvals')).toMatchObject({
    policy: { notebook: 'first' }
  });
  const files = new Files(request, baseURL!);
  const path = `${tmpPath}/rain.ipynb`;
  const rain = 'rain = {"Mon": 3, "Tue": 0, "Wed": 12}';
  await files.write(`${tmpPath}/behind.ipynb`, [codeCell('other', '1')]);
  await files.write(path, [codeCell('mine', rain)]);
  await OpenNotebook.open(page, `${tmpPath}/behind.ipynb`);
  const notebook = await OpenNotebook.open(page, path);
  await notebook.ready(request, baseURL!);
  const person = new Person(page);
  await person.run(0);
  await expect(person.prompt(0)).toHaveText('[1]:');

  const program = new Process(
    'python',
    ['-m', 'tests.mcp.signing_in', `${baseURL}/api/agent-exec/mcp`].concat(
      path,
      'sum(rain.values())'
    ),
    process.env
  );
  const consent = await page.context().newPage();
  await consent.goto(await program.line());
  const tick = (name: string) =>
    consent.getByRole('checkbox', { name: `Work in ${tmpPath}/${name}` });
  await expect(tick('rain.ipynb')).toBeChecked();
  await expect(tick('rain.ipynb')).toHaveAccessibleName(
    /run code and change cells \(you approve the first time\)$/
  );
  await expect(tick('behind.ipynb')).not.toBeChecked();
  const answered = consent.waitForRequest(/code=/);
  await consent.getByRole('button', { name: 'Give access' }).click();
  program.type((await answered).url());
  await consent.close();

  // Nothing runs before the user has seen it, in their own notebook.
  const question = Question.in(page.locator('.jp-NotebookPanel:visible'));
  await expect.poll(() => question.lines()).toEqual(['sum(rain.values())']);
  await expect(page.locator('.jp-AgentExecBadge')).toHaveCount(0);
  await question.button('Approve').click();
  await expect(person.cell(1)).toContainText('sum(rain.values())');
  await expect(person.cell(1).locator('.jp-OutputArea-output')).toHaveText(
    '15'
  );
  expect(JSON.parse(await program.line())).toMatchObject({
    text: expect.stringContaining('15')
  });
  await program.stop();
});
