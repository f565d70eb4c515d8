/** The pictures in the documentation of what people decide. */
import { expect } from '@jupyterlab/galata';
import { Question, test } from './approval';
import { codeCell, Files, OpenNotebook } from './notebook';
import { Person } from './person';
import { keepInThemes, SKETCH } from './pictures';
import { runAsPerson } from './trust';

test.use({ samePage: false });

/** What a person would want to look at before it runs. */
const SOURCE = `forecast = {month: round(n * 1.1) for month, n in sales.items()}
best = max(forecast, key=forecast.get)
print(f"{best}: {forecast[best]}")`;

/** Plots that grow, fall, and both. */
const PLOTS = `for plot in (range(40), range(40, 0, -1), [x % 13 for x in range(40)]):
    display(sketch(list(plot)))`;

const SALES = 'sales = {"January": 120, "February": 95, "March": 143}';

test('an agent asks', async ({
  page,
  request,
  baseURL,
  tmpPath,
  panel,
  newAsking
}) => {
  await page.setViewportSize({ width: 1280, height: 860 });
  const path = `${tmpPath}/Sales.ipynb`;
  await new Files(request, baseURL!).write(path, [
    { cell_type: 'markdown', id: 'title', source: '## Sales', metadata: {} },
    codeCell('mine', SALES)
  ]);
  const notebook = await OpenNotebook.open(page, path);
  await notebook.ready(request, baseURL!);
  await page.sidebar.close('left');
  const person = new Person(page);
  await runAsPerson(notebook, 1);
  await expect(person.prompt(1)).toHaveText('[1]:');
  const title = 'Forecast';
  const agent = await newAsking(title, path);
  await panel.open();
  await page.sidebar.setWidth(440, 'right');
  await agent.ask(SOURCE);
  const question = Question.in(person.cell(1));
  await expect(question.node).toContainText('expires in');
  await expect(question.node).toContainText('March: 157');
  await expect.poll(() => question.lines()).toHaveLength(3);
  await expect(question.button('Approve')).toBeEnabled();
  await keepInThemes(page, 'approval');
});

test('a session is reviewed', async ({ page, panel, server, newAsking }) => {
  await page.setViewportSize({ width: 1280, height: 980 });
  await server.setPolicy({ scratch: 'none' });
  const title = 'Three plots';
  const agent = await newAsking(title);
  for (const source of [SKETCH, PLOTS]) {
    const asked = await agent.ask(source);
    expect((await agent.read(asked, 60)).status).toBe('ok');
  }
  await panel.open();
  await page.sidebar.close('left');
  await page.sidebar.setWidth(300, 'right');
  await panel.show(title);
  await panel.choose(1, 'Mark Reviewed');
  await expect(panel.cell(1)).toContainText(/Reviewed by/);
  await expect(panel.cell(2).getByRole('img').last()).toBeVisible();
  await keepInThemes(page, 'review');
});
