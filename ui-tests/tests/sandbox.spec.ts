/** Active outputs in a sandbox: nothing gets out, whatever they try. */
import { expect } from '@jupyterlab/galata';
import type { Agent } from './agent';
import { Listener } from './listener';
import { test as base } from './panel';

const test = base.extend<{ listener: Listener }>({
  listener: async ({}, use) => {
    const listener = await Listener.open();
    await use(listener);
    listener.close();
  }
});

/** Let an agent put something out. */
async function put(agent: Agent, kind: string, text: string): Promise<void> {
  await agent.run(
    `from IPython.display import ${kind}, display\ndisplay(${kind}(${JSON.stringify(text)}))`
  );
}

/** What an output tries; `HOST` is where it wants to get. */
const ATTEMPTS: Record<string, string> = {
  script:
    '<script>fetch("HOST/f"); new WebSocket("ws://HOST"); location = "HOST/l"</script><img src=x onerror="location = \'HOST/o\'"><svg onload="location = \'HOST/s\'"></svg>',
  refresh:
    '<meta http-equiv="refresh" content="0;url=HOST/r"><noscript><meta http-equiv="refresh" content="0;url=HOST/n"></noscript><svg><foreignObject><meta http-equiv="refresh" content="0;url=HOST/s"></foreignObject></svg>',
  'markup that changes when it is read twice':
    '<svg></p><style><a id="</style><meta http-equiv=refresh content=\'0;url=HOST/m\'>"></svg>',
  links: [
    'preconnect',
    'dns-prefetch',
    'prefetch',
    'preload',
    'modulepreload',
    'icon',
    'stylesheet',
    'manifest'
  ]
    .map(rel => `<link rel="${rel}" as="image" href="HOST/${rel}">`)
    .join(''),
  'a shadow':
    '<div><template shadowrootmode="open"><link rel="preconnect" href="HOST"><link rel="stylesheet" href="HOST/s"></template></div>',
  media:
    '<img src="HOST/i" srcset="HOST/i2 2x"><video poster="HOST/p" src="HOST/v" autoplay></video><picture><source srcset="HOST/q"><img></picture><input type=image src="HOST/n"><object data="HOST/o"></object><embed src="HOST/e"><table background="HOST/t"></table>',
  style:
    '<style>@import "HOST/im"; body { background: url(HOST/b) } @font-face { font-family: q; src: url(HOST/f) } p { font-family: q }</style><p>x</p><div style="background: url(HOST/d)">x</div>',
  frames:
    '<iframe src="HOST/f"></iframe><iframe srcdoc="<script>location=\'HOST/d\'</script>"></iframe>',
  'a link':
    '<a href="HOST/a" ping="HOST/p" style="position: fixed; inset: 0">x</a>',
  'a link to the top':
    '<a target="_top" href="HOST/t" style="position: fixed; inset: 0">x</a>',
  'a link that is made later':
    '<svg width=300 height=300 style="position: fixed; inset: 0"><a><set attributeName="href" to="HOST/s"/><rect width=300 height=300 /></a></svg>',
  'a form':
    '<form action="HOST/f" target="_top"><button style="position: fixed; inset: 0">x</button></form>'
};

for (const [what, markup] of Object.entries(ATTEMPTS)) {
  test(`nothing gets out of a sandbox: ${what}`, async ({
    page,
    panel,
    newAgent,
    listener
  }) => {
    const agent = await newAgent(`Tries ${what}`);
    await panel.open();
    await panel.session(`Tries ${what}`).first().click();
    const html = markup.split('HOST').join(`http://${listener.address}`);
    await put(agent, 'HTML', `<style></style>${html}<b>shown</b>`);
    const cell = panel.cell(1);
    await cell.getByRole('button', { name: /^View in a sandbox/ }).click();
    const frame = cell.frameLocator('iframe').frameLocator('iframe');
    await expect(frame.locator('body')).toContainText('shown');
    await cell.locator('iframe').click();
    await expect(frame.locator('body')).toContainText('shown');
    // What had been sent before this is there when this is.
    await page.request.get(`http://${listener.address}/last`).catch(() => null);
    expect(listener.heard).toEqual(['a connection', 'GET /last HTTP/1.1']);
    expect(page.context().pages()).toHaveLength(1);
  });
}

test('a sandbox opens on a click only, and is closed with the keyboard', async ({
  page,
  panel,
  newAgent
}) => {
  const agent = await newAgent('Active');
  await panel.open();
  await panel.session('Active').click();
  await put(
    agent,
    'SVG',
    '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="40"><text y="20">drawn</text></svg>'
  );
  await agent.run(
    'from IPython.display import display\ndisplay({"application/vnd.vegalite.v5+json": {"mark": "bar"}}, raw=True)'
  );
  const cell = panel.cell(1);
  await expect(cell.locator('iframe')).toHaveCount(0);
  const button = cell.getByRole('button', {
    name: 'View in a sandbox: SVG image'
  });
  await button.focus();
  await page.keyboard.press('Enter');
  const frame = cell.frameLocator('iframe').frameLocator('iframe');
  await expect(frame.getByText('drawn')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(cell.locator('iframe')).toHaveCount(0);
  await expect(button).toBeFocused();
  // What needs a program shows its data, and says why.
  const chart = panel.cell(2);
  await chart.getByRole('button', { name: 'Show as text: Vega chart' }).click();
  await expect(chart).toContainText('"mark": "bar"');
  await expect(chart).toContainText('Scripts from agents do not run here');
});

test('what was left out for its size is fetched into a sandbox', async ({
  panel,
  newAgent
}) => {
  const agent = await newAgent('Large');
  // Whoever looks on while it runs is sent all of it.
  await agent.run(
    'from IPython.display import HTML, display\n' +
      'display(HTML("<style>b { color: red }</style><!--" + "x" * 20000 + "--><b>drawn</b>"))'
  );
  await panel.open();
  await panel.session('Large').click();
  const cell = panel.cell(1);
  await expect(cell.getByRole('button', { name: /^Show HTML/ })).toBeVisible();
  await cell.getByRole('button', { name: 'View in a sandbox' }).click();
  const drawn = cell
    .frameLocator('iframe')
    .frameLocator('iframe')
    .getByText('drawn');
  await expect(drawn).toHaveCSS('color', 'rgb(255, 0, 0)');
});
