/** What of an agent's outputs is active in a person's notebook, and when. */
import { expect } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';
import { codeCell } from './notebook';
import {
  accept,
  canary,
  closeNotebook,
  dataFrameStyles,
  decisions,
  outputs,
  python,
  ran,
  runAsPerson,
  shown,
  test,
  trusted
} from './trust';

const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGP4z8AARwzEcQCukw/x0F8jngAAAABJRU5ErkJggg==';

const FRAME = 'pd.DataFrame({"name": ["a", "b"], "size": [1.5, 20.25]})';

/** A person's outputs: two that are active, and a table. */
const MINE = `import pandas as pd
from IPython.display import HTML, Javascript, display
display(Javascript(${python(canary('mine'))}))
display(HTML(${python(
  `<p id="chart"></p><script>${canary('mine-html')}; ` +
    'document.getElementById("chart").textContent = "drawn"</script>'
)}))
${FRAME}`;

/** What runs of it. */
const MINE_RAN = ['mine', 'mine-html'];

/** An agent's outputs, of all kinds. */
const THEIRS = `import base64
import pandas as pd
from IPython.display import HTML, SVG, Image, Javascript, Latex, Markdown, display
display(Image(data=base64.b64decode("${PNG}"), width=40, alt="a picture"))
display(SVG(data=${python(
  `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="${canary('svg')}">` +
    `<script>${canary('svg-script')}</script></svg>`
)}))
display(Javascript(${python(canary('javascript'))}))
display(Markdown(${python(`**said** <img src="x" onerror="${canary('markdown')}">`)}))
display(Latex(${python(`$\\href{javascript:${canary('latex')}}{x}$`)}))
display({
    "application/vnd.plotly.v1+json": {"data": [], "layout": {}},
    "text/html": ${python(`<div>a plot</div><script>${canary('plotly')}</script>`)},
    "text/plain": "Figure()",
}, raw=True)
display({
    "application/vnd.vegalite.v5+json": {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": [{"a": 1}]}, "mark": "point", "encoding": {},
    },
    "text/plain": "a chart",
}, raw=True)
display(HTML(${python(`<b>bold</b><script>${canary('html')}</script>`)}))
${FRAME}`;

for (const way of ['tab', 'contents']) {
  test(`a trusted notebook stays trusted with an agent’s cell, written by way of ${way}`, async ({
    desk,
    page
  }) => {
    let notebook = await desk.open([codeCell('mine', MINE)]);
    await runAsPerson(notebook, 0);
    await notebook.save();
    const agent = await desk.attach();
    if (way === 'contents') {
      await closeNotebook(notebook);
    }
    const { via, ...written } = await desk.run(agent, THEIRS);
    expect(via).toBe(way);
    expect(written.outputs).toBe('held');
    if (way === 'tab') {
      await expect(shown(page, 1)).toContainText('bold');
      await expect.poll(() => ran(page)).toEqual(MINE_RAN);
      await notebook.save();
    }
    notebook = await desk.reopen();
    await expect.poll(() => ran(page)).toEqual(MINE_RAN);
    expect(await trusted(notebook)).toEqual([true, true]);
    await expect(shown(page, 0).locator('#chart')).toHaveText('drawn');
    await expect(shown(page, 1)).toContainText('bold');
    await expect(shown(page, 1)).toContainText('a chart');
    await expect(shown(page, 1)).toContainText('a plot');
    await expect(outputs(page, 1).locator('strong')).toHaveText('said');
    const image = outputs(page, 1).locator('img[width="40"]');
    await expect(image).toHaveJSProperty('naturalWidth', 4);
    await expect(image).toHaveJSProperty('width', 40);
    await expect(outputs(page, 1).locator('svg, script')).toHaveCount(0);
    expect(await ran(page)).toEqual(MINE_RAN);
  });
}

test('an agent’s table looks like a person’s', async ({ desk, page }) => {
  const source = `import pandas as pd\n${FRAME}`;
  let notebook = await desk.open([codeCell('mine', source)]);
  const agent = await desk.attach();
  await desk.run(agent, source);
  await notebook.save();
  notebook = await desk.reopen();
  // The person's own has a style, which holds for the whole page.
  const theirs = await dataFrameStyles(outputs(page, 1));
  await runAsPerson(notebook, 0);
  await expect.poll(() => dataFrameStyles(outputs(page, 0))).toEqual(theirs);
  expect(theirs.length).toBeGreaterThan(8);
});

/** HTML that runs something when a page takes it as it is. */
const FIRING = [
  `<script>${canary('script')}</script>`,
  `<img src="x" onerror="${canary('onerror')}">`,
  `<svg onload="${canary('onload')}"></svg>`,
  `<details open ontoggle="${canary('ontoggle')}"><summary>x</summary></details>`,
  `<iframe srcdoc="<script>${canary('srcdoc').replaceAll('window', 'parent')}</script>"></iframe>`,
  `<style>@keyframes k{}</style><p style="animation: k 1s" onanimationstart="${canary('animation')}">x</p>`,
  `<input autofocus onfocus="${canary('focus')}">`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=${canary('mxss')}&gt;">`,
  `<noscript><p title="</noscript><img src=x onerror=${canary('noscript')}>">`
];

/** HTML that waits for a click, covers the page, or leads away from it. */
const LURKING = [
  `<a id="lure" href="javascript:${canary('link')}">a link</a>`,
  `<a href=" &#1;java&#10;script:${canary('link-2')}">another link</a>`,
  `<button onclick="${canary('click')}">a button</button>`,
  '<form action="https://example.org"><input name="password"></form>',
  '<style>.jp-NotebookPanel-toolbar { display: none !important }</style>',
  '<div style="position: fixed; inset: 0; z-index: 99999">covers</div>',
  '<div class="jp-Dialog lm-mod-hidden" data-commandlinker-command="notebook:run-all">no dialog</div>',
  '<a data-commandlinker-command="apputils:change-theme" href="#">a command</a>',
  '<meta http-equiv="refresh" content="0; url=https://example.org">',
  '<base href="https://example.org"><link rel="stylesheet" href="/x.css">',
  '<object data="x"></object><embed src="x"><template><p>x</p></template>',
  '<img src="https://example.org/x.png"><p id="lm-dock">an id</p>'
];

const shows = (html: readonly string[]) =>
  `from IPython.display import HTML, display\n` +
  html.map(each => `display(HTML(${python(each)}))`).join('\n');

/** What else may bring HTML, and an error with some. */
const OTHERWISE = `import sys
from IPython.display import Markdown, display
bad = ${python(`<img src="x" onerror="${canary('text')}">`)}
print(bad)
print("\\x1b]8;;javascript:${canary('osc').replaceAll('"', "'")}\\x07a\\x1b]8;;\\x07", file=sys.stderr)
display(Markdown("[link](javascript:alert) " + bad))
display({"text/html": bad}, raw=True, metadata={"text/html": {"isolated": True}})
display({"application/json": {"a": bad}}, raw=True)
display({"text/plain": bad, "text/vnd.mermaid": "graph TD; a-->b"}, raw=True)
display({"image/png": "x' onerror='" , "text/plain": bad}, raw=True)
display({"application/vnd.jupyter.stderr": bad, "text/plain": "x"}, raw=True)
raise ValueError(bad)`;

/** What a page must not have in an output, or around it. */
async function expectHarmless(page: Page, index: number) {
  const found = await shown(page, index)
    .locator('.jp-Cell-outputArea')
    .evaluate(area =>
      Array.from(area.querySelectorAll('*'))
        .filter(
          node =>
            !node.closest('[data-icon], .jp-RenderedJSON') && // JupyterLab's
            (/^(script|style|iframe|form|input|button|meta|base|link|object|embed|svg|math)$/i.test(
              node.tagName
            ) ||
              /javascript:/i.test(
                (node.getAttribute('href') ?? '').replace(/[\s\x00-\x1f]/g, '')
              ) ||
              /^https?:/.test(node.getAttribute('src') ?? '') ||
              node.getAttributeNames().some(name => name.startsWith('on')) ||
              getComputedStyle(node).position === 'fixed' ||
              node.hasAttribute('data-commandlinker-command') ||
              node.id !== '')
        )
        .map(node => node.outerHTML.slice(0, 200))
    );
  expect(found).toEqual([]);
  await expectToolbar(page);
}

/** The toolbar is in sight, and nothing lies over it. */
async function expectToolbar(page: Page) {
  const toolbar = page.locator('.jp-NotebookPanel-toolbar:visible');
  await toolbar.getByRole('button', { name: /^Save/ }).click({ trial: true });
}

for (const way of ['tab', 'contents']) {
  test(`nothing that an agent shows is active by way of ${way}`, async ({
    desk,
    page
  }) => {
    let notebook = await desk.open([codeCell('mine', shows(FIRING))]);
    const agent = await desk.attach();
    if (way === 'contents') {
      await closeNotebook(notebook);
    }
    for (const source of [shows(FIRING), shows(LURKING), OTHERWISE]) {
      expect((await desk.run(agent, source)).via).toBe(way);
    }
    if (way === 'tab') {
      await expectAllHarmless(page);
      await notebook.save();
    }
    notebook = await desk.reopen();
    await expectAllHarmless(page);
    expect(await trusted(notebook)).toEqual([true, true, true, true]);
    // They would run if they came from the person.
    await runAsPerson(notebook, 0);
    await expect
      .poll(() => ran(page))
      .toEqual(expect.arrayContaining(['onerror', 'script', 'srcdoc']));
  });
}

async function expectAllHarmless(page: Page) {
  await expect(shown(page, 3)).toContainText('ValueError');
  for (const index of [1, 2, 3]) {
    await shown(page, index).scrollIntoViewIfNeeded();
    await expectHarmless(page, index);
  }
  for (const link of await outputs(page, 2).locator('a').all()) {
    await link.click();
  }
  expect(await ran(page)).toEqual([]);
}

test('markdown that an agent writes runs nothing where all is trusted', async ({
  desk,
  page
}) => {
  const mine = `from IPython.display import Javascript\nJavascript(${python(canary('mine'))})`;
  let notebook = await desk.open([
    codeCell('mine', mine),
    { cell_type: 'markdown', id: 'text', source: '# mine', metadata: {} }
  ]);
  await runAsPerson(notebook, 0);
  const agent = await desk.attach();
  const source = [...FIRING, ...LURKING].join('\n\n');
  await agent.edit(desk.path, [
    { op: 'insert', cell_type: 'markdown', source, after: 'mine' },
    { op: 'replace', cell_id: 'text', source },
    { op: 'insert', cell_type: 'raw', source }
  ]);
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('notebook:render-all-markdown')
  );
  const text = page.locator('.jp-NotebookPanel:visible .jp-RenderedMarkdown');
  const expectNothing = async () => {
    for (const each of [text.first(), text.last()]) {
      await expect(each).toContainText('a link');
      await expect(each.locator('[onclick], iframe, script')).toHaveCount(0);
      await each.getByText('a link').click();
    }
    await expectToolbar(page);
    await expect.poll(() => ran(page)).toEqual(['mine']);
  };
  await expectNothing();
  await notebook.save();
  notebook = await desk.reopen();
  await expectNothing();
  expect(await trusted(notebook)).toEqual([true]);
});

test('an agent gets nothing trusted that was not', async ({ desk, page }) => {
  const data = { 'application/javascript': canary('foreign') };
  const output = { output_type: 'display_data', data, metadata: {} };
  const foreign = { ...codeCell('foreign', 'show()'), execution_count: 1 };
  let notebook = await desk.open([
    { ...foreign, outputs: [output] },
    codeCell('empty', '')
  ]);
  const agent = await desk.attach();
  expect((await desk.run(agent, '"here"')).via).toBe('tab');
  await agent.edit(desk.path, [
    { op: 'move', cell_id: 'foreign' },
    { op: 'replace', cell_id: 'foreign', source: 'hide()' }
  ]);
  await notebook.save();
  await closeNotebook(notebook);
  expect((await desk.run(agent, '"there"')).via).toBe('contents');
  await agent.edit(desk.path, [
    { op: 'move', cell_id: 'foreign', before: 'empty' },
    { op: 'clear_outputs', cell_id: 'empty' }
  ]);
  notebook = await desk.reopen();
  await expect(shown(page, 3)).toContainText('there');
  expect(await trusted(notebook)).toContain(false);
  expect(await ran(page)).toEqual([]);
  await notebook.save();
  notebook = await desk.reopen();
  expect(await trusted(notebook)).toContain(false);
  expect(await ran(page)).toEqual([]);
});

const active = (name: string) =>
  `from IPython.display import Javascript\nJavascript(${python(canary(name))})`;

test('what a person accepts is active, in that cell only, and stays so', async ({
  desk,
  page,
  request,
  baseURL
}) => {
  let notebook = await desk.open([codeCell('mine', 'x = 1')]);
  const agent = await desk.attach();
  const { session_id } = await desk.run(agent, active('first'));
  await desk.run(agent, active('second'));
  const badge = shown(page, 1).getByRole('group', { name: /^Agent / });
  await badge.getByRole('button', { name: 'Accept outputs' }).click();
  await expect.poll(() => ran(page)).toEqual(['first']);
  await notebook.save();
  notebook = await desk.reopen();
  await expect.poll(() => ran(page)).toEqual(['first']);
  expect(await trusted(notebook)).toEqual([true, true, true]);
  expect(await decisions(request, baseURL!, session_id)).toEqual([
    'outputs_accepted'
  ]);
});

test('what is accepted in a closed notebook is active when it is opened', async ({
  desk,
  page,
  request,
  baseURL
}) => {
  let notebook = await desk.open([codeCell('mine', active('mine'))]);
  await runAsPerson(notebook, 0);
  await notebook.save();
  await closeNotebook(notebook);
  const agent = await desk.attach();
  const accepted = await desk.run(agent, active('accepted'));
  await desk.run(agent, active('held'));
  expect(accepted.via).toBe('contents');
  await agent.close();
  await accept(request, baseURL!, accepted.id);
  notebook = await desk.reopen();
  await expect.poll(() => ran(page)).toEqual(['accepted', 'mine']);
  expect(await trusted(notebook)).toEqual([true, true, true]);
});

/** A chart as Altair puts it out, without the library. */
const VEGA = `from IPython.display import display
display({"text/plain": "alt.Chart(...)", "application/vnd.vegalite.v5+json": {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "data": {"values": [{"a": "x", "b": 2}, {"a": "y", "b": 3}]},
    "mark": "bar",
    "encoding": {"x": {"field": "a"}, "y": {"field": "b", "type": "quantitative"}},
}}, raw=True)`;

test('a widget and a chart of an agent work once they are accepted', async ({
  desk,
  page
}) => {
  let notebook = await desk.open([codeCell('mine', 'print(slider.value)')]);
  const agent = await desk.attach();
  const source = `import ipywidgets
slider = ipywidgets.IntSlider(value=3)
told = ipywidgets.Output()
def tell(change):
    with told:
        print("moved to", change["new"])
slider.observe(tell, "value")
ipywidgets.VBox([slider, told])`;
  const ran = await desk.run(agent, source);
  expect(ran.outputs).toBe('held');
  await expect(shown(page, 1)).toContainText('VBox(children=');
  const badge = shown(page, 1).getByRole('group', { name: /^Agent / });
  await badge.hover();
  await expect(badge).toContainText(' hidden');
  await expect(shown(page, 1).locator('.jupyter-widgets')).toHaveCount(0);
  const accept = async (index: number) => {
    const name = 'Accept outputs';
    await shown(page, index).getByRole('button', { name }).click();
  };
  await accept(1);
  const readout = shown(page, 1).locator('.widget-readout');
  await expect(readout).toHaveText('3');
  await desk.run(agent, VEGA);
  await accept(2);
  await expect(shown(page, 2).locator('.vega-embed canvas')).toBeVisible();
  await shown(page, 1).locator('.noUi-handle').press('ArrowRight');
  await expect(shown(page, 1)).toContainText('moved to 4');
  await runAsPerson(notebook, 0);
  await expect(outputs(page, 0)).toHaveText('4');
  await desk.run(agent, 'slider.value = slider.value + 3');
  await expect(readout).toHaveText('7');
  await notebook.save();
  notebook = await desk.reopen();
  await expect(readout).toHaveText('7');
  await shown(page, 1).locator('.noUi-handle').press('ArrowRight');
  await expect(shown(page, 1)).toContainText('moved to 8');
  await runAsPerson(notebook, 0);
  await expect(outputs(page, 0)).toHaveText('8');
});
