/** The pictures in the documentation of what agents ran. */
import { expect } from '@jupyterlab/galata';
import { codeCell, Files, NotebookAgent, OpenNotebook } from './notebook';
import { test } from './panel';
import { keep, keepInThemes, SKETCH } from './pictures';

test.use({ samePage: false });

const STEPS = [
  `values = [math.sin(x / 8) * x for x in range(100)]
print(f"{len(values)} values, {min(values):.1f} to {max(values):.1f}")`,
  'total = sum(valeus)',
  `from IPython.display import HTML
rows = "".join(
    f"<tr><td>{x}</td><td>{values[x]:.2f}</td></tr>"
    for x in range(0, 100, 25)
)
HTML(f"<table><tr><th>x</th><th>value</th></tr>{rows}</table>")`,
  'sketch(values)'
];

const TABLE = `from IPython.display import HTML
rows = "".join(f"<tr><td>{m}</td><td>{n}</td></tr>" for m, n in sales.items())
HTML(f"<table><tr><th>month</th><th>sold</th></tr>{rows}</table>")`;

const SCRIPT = `from IPython.display import Javascript
Javascript("element.append('a chart that can be turned')")`;

const FORECAST = `import time
for month in range(600):
    print("month", month, flush=True)
    time.sleep(0.5)`;

test('the panel', async ({ page, panel, newAgent }) => {
  await page.setViewportSize({ width: 1280, height: 980 });
  const title = 'Sines and their sum';
  const agent = await newAgent(title, SKETCH);
  for (const step of STEPS) {
    await agent.run(step);
  }
  await agent.begin(
    'import time\nfor step in range(600):\n    print("fitting, step", step, flush=True)\n    time.sleep(0.5)'
  );
  await panel.open();
  await panel.show(title);
  await page.sidebar.close('left');
  await page.sidebar.setWidth(300, 'right');
  await expect(panel.cell(6)).toContainText('fitting, step 2');
  await expect(panel.cell(5).getByRole('img')).toBeVisible();
  await expect(panel.cell(6)).toContainText(/Running\s*\d+ s/);
  await keepInThemes(page, 'panel');
});

test('an agent’s cells in a notebook', async ({
  page,
  request,
  baseURL,
  tmpPath
}) => {
  await page.setViewportSize({ width: 1000, height: 720 });
  const path = `${tmpPath}/Sales.ipynb`;
  const cells = [
    {
      cell_type: 'markdown',
      id: 'title',
      source: '## Sales by month',
      metadata: {}
    },
    codeCell('mine', 'sales = {"January": 120, "February": 95, "March": 143}')
  ];
  await new Files(request, baseURL!).write(path, cells);
  await page.notebook.openByPath(path);
  await page.notebook.activate('Sales.ipynb');
  await page.sidebar.close('left');
  await new OpenNotebook(page, path).ready(request, baseURL!);
  await page.notebook.selectCells(1);
  await page.keyboard.press('Control+Enter');
  await expect(page.locator('.jp-Notebook')).toContainText('[1]:');
  const agent = await NotebookAgent.open(request, baseURL!, path);
  try {
    expect(await agent.run(TABLE)).toBe('tab');
    await agent.run(SCRIPT);
    await agent.begin(FORECAST);
    await page.getByText('month 2').waitFor();
    const badges = page.getByRole('group', { name: /^Agent “analyst/ });
    await expect(badges).toHaveCount(3);
    await expect(badges.nth(1)).toContainText('JavaScript hidden');
    await expect(badges.nth(2)).toContainText(/Running\s*\d+ s/);
    await expect(
      page.getByRole('button', { name: /^Agent “analyst”: Running/ })
    ).toBeVisible();
    await keep(page, 'notebook-light');
  } finally {
    await agent.close();
  }
});
