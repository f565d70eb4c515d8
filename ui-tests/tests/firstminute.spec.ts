/** What the README and the tutorial promise: an agent in the notebook that you have open. */
import { expect, request as requests, test } from '@playwright/test';
import { Question } from './approval';
import { openLab } from './lab';
import { codeCell, Files, OpenNotebook } from './notebook';
import { OwnServer } from './ownserver';
import { Person } from './person';
import { keep } from './pictures';
import { Process } from './process';

const TOKEN = 'the-token-of-the-person';

test('an MCP client signs in, and works in the open notebook once its user approves', async ({
  page
}) => {
  const server = await OwnServer.prepare({ AGENT_EXEC_UI_TOKEN: TOKEN });
  await server.start();
  const request = await requests.newContext({
    extraHTTPHeaders: { Authorization: `token ${TOKEN}` }
  });
  const files = new Files(request, server.url);
  const rain = 'rain = {"Mon": 3, "Tue": 0, "Wed": 12}';
  await files.write('behind.ipynb', [codeCell('other', '1')]);
  await files.write('rain.ipynb', [codeCell('mine', rain)]);
  await page.goto(`${server.url}/lab?token=${TOKEN}`);
  await openLab(page, server.url, 'first');
  await OpenNotebook.open(page, 'behind.ipynb');
  const notebook = await OpenNotebook.open(page, 'rain.ipynb');
  await notebook.ready(request, server.url);
  await notebook.connected();
  const person = new Person(page);
  await person.run(0);
  await expect(person.prompt(0)).toHaveText('[1]:');

  const program = new Process(
    'python',
    ['-m', 'tests.mcp.signing_in', `${server.url}/api/agent-exec/mcp`].concat(
      'rain.ipynb',
      'sum(rain.values())'
    ),
    process.env
  );
  const consent = await page.context().newPage();
  await consent.goto(await program.line());
  const ticks = consent.getByRole('checkbox', { name: /^Work in / });
  await expect(ticks).toHaveCount(2);
  await expect(ticks.first()).toBeChecked();
  await expect(ticks.first()).toHaveAccessibleName(
    /rain\.ipynb.*: run code and change cells \(you approve the first time\)$/
  );
  await expect(ticks.last()).not.toBeChecked();
  await consent.setViewportSize({ width: 720, height: 1000 });
  await keep(consent, 'sign-in');
  const answered = consent.waitForRequest(/code=/);
  await consent.getByRole('button', { name: 'Give access' }).click();
  program.type((await answered).url());
  await consent.close();

  // Nothing runs before the user has seen it, in their own notebook.
  const question = Question.in(page.locator('.jp-NotebookPanel:visible'));
  await expect.poll(() => question.lines()).toEqual(['sum(rain.values())']);
  await expect(person.badge(1)).toHaveCount(0);
  await question.answer('Approve');
  // Running the last cell may have added an empty one below it.
  const cell = page
    .locator('.jp-NotebookPanel:visible .jp-Cell')
    .filter({ hasText: 'sum(rain.values())' });
  // For a moment, what the trial printed is still there, too.
  await expect(cell.locator('.jp-OutputArea-output')).toHaveText(['15']);
  expect(JSON.parse(await program.line()).text).toContain('\n15\n');
  await program.stop();
  await request.dispose();
  await server.remove();
});
