/** An agent at work in a notebook: the animated picture in the README. */
import { expect } from '@jupyterlab/galata';
import { Question, test } from './approval';
import { codeCell, Files, OpenNotebook } from './notebook';
import { Person } from './person';
import { Film } from './pictures';
import { ProposingAgent, ShownProposals } from './proposing';
import { runAsPerson } from './trust';

test.use({ samePage: false });

const SALES = `import pandas as pd

sales = pd.Series({"Jan": 120, "Feb": 95, "Mar": 143, "Apr": 160})`;

const PLOT = `axes = sales.plot.bar(figsize=(5, 1.3), rot=0)
axes.set_title("Sold in a month");`;

test('an agent asks, runs, and proposes an edit, and the user decides', async ({
  page,
  request,
  baseURL,
  tmpPath,
  panel,
  server
}, testInfo) => {
  await page.setViewportSize({ width: 1120, height: 640 });
  const path = `${tmpPath}/Sales.ipynb`;
  await new Files(request, baseURL!).write(path, [
    { cell_type: 'markdown', id: 'title', source: '## Sales', metadata: {} },
    codeCell('sales', SALES)
  ]);
  await page.notebook.openByPath(path);
  const notebook = new OpenNotebook(page, path);
  await notebook.ready(request, baseURL!);
  await page.sidebar.close('left');
  const film = new Film(page, testInfo.outputPath());
  const person = new Person(page);
  await server.setPolicy({ notebook: 'always' });
  await runAsPerson(notebook, 1);
  await expect(person.prompt(1)).toHaveText('[1]:');
  await film.show(1.5);

  const title = 'Plot the sales';
  const agent = await ProposingAgent.open(request, baseURL!, path, title);
  await agent.ask(PLOT);
  const question = Question.in(page);
  await expect(question.node.getByRole('img').last()).toBeVisible();
  await expect(question.button('Approve')).toBeEnabled();
  await film.show(2.5);
  await question.button('Approve').hover();
  await film.show(1);
  await question.answer('Approve');
  const chart = person.cell(2).locator('.jp-OutputArea-output img');
  await expect(chart).toBeVisible();
  await expect(person.badge(2)).toBeVisible();
  await page.mouse.move(0, 0);
  await film.show(3);

  await agent.propose({
    op: 'replace',
    cell_id: 'sales',
    source: SALES.replace('160}', '160, "May": 171}')
  });
  const shown = new ShownProposals(page);
  const change = shown.edit('Change this cell');
  await expect(change.locator('ins')).toContainText('171');
  await film.show(2.5);
  await shown.keep(change);
  await expect(shown.bar).toContainText('1 kept');
  await expect(change).toBeHidden();
  await expect(person.cell(1)).toContainText('171');
  await film.show(2);

  await panel.open();
  await page.sidebar.setWidth(400, 'right');
  await panel.show(title);
  await expect(panel.cell(1).getByRole('img').first()).toBeVisible();
  await film.show(3);
  film.keep('agent-at-work');
  await agent.close();
});
