/** Who is at work, what is notified, and stopping it. */
import { expect } from '@jupyterlab/galata';
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import { mergeTests } from '@playwright/test';
import type { Locator, WebSocketRoute } from '@playwright/test';
import { test as approvalTest } from './approval';
import type { AskingAgent, IExecution } from './approval';
import { Files, OpenNotebook } from './notebook';
import { INTERRUPT } from './panel';
import { test as trustTest } from './trust';

const test = mergeTests(approvalTest, trustTest);

const ENDLESS =
  'import time\nprint("begun", flush=True)\nwhile True:\n    time.sleep(0.05)';
const STUBBORN =
  'import time\nwhile True:\n    try:\n        print("begun", flush=True)\n        time.sleep(1)\n    except KeyboardInterrupt:\n        print("no", flush=True)';

test.use({ policy: { notebook: 'none', scratch: 'none' } });

/** The status bar's item. */
function item(page: IJupyterLabPageFixture): Locator {
  return page
    .locator('#jp-main-statusbar')
    .getByRole('button', { name: /at work|needs? approval/ });
}

/** Wait until a kernel is in the midst of what it runs. */
async function begun(agent: AskingAgent, asked: IExecution): Promise<void> {
  await expect
    .poll(async () => (await agent.read(asked)).text)
    .toContain('begun');
}

/** Notifications that are shown, as JupyterLab does. */
function toasts(page: IJupyterLabPageFixture, text: RegExp): Locator {
  return page.locator('.Toastify__toast').filter({ hasText: text });
}

test('the status bar counts agents at work, and leads to what they run', async ({
  page,
  panel,
  newAsking
}) => {
  const first = await newAsking('First at work');
  const second = await newAsking('Second at work');
  await expect(item(page)).toHaveCount(0);
  const running = await first.ask(ENDLESS);
  await expect(item(page)).toHaveText('1 agent at work');
  await expect(item(page)).toHaveAttribute(
    'title',
    '“analyst” · cell 1: Running'
  );
  await second.ask('1 + 1').then(asked => second.read(asked, 30));
  const other = await second.ask(ENDLESS);
  await expect(item(page)).toHaveText('2 agents at work');
  await first.cancel(running);
  await expect(item(page)).toHaveText('1 agent at work');

  await item(page).focus();
  await page.keyboard.press('Enter');
  await expect(panel.about).toContainText('Second at work');
  await expect(panel.cell(2)).toContainText('Running');
  await expect(panel.cell(2)).toBeInViewport();
  await second.cancel(other);
  await expect(item(page)).toHaveCount(0);
});

test('what runs when the page opens is counted too', async ({
  page,
  newAsking
}) => {
  const agent = await newAsking('Before the page');
  const running = await agent.ask(ENDLESS);
  await expect(item(page)).toHaveText('1 agent at work');
  await page.reload();
  await expect(item(page)).toHaveText('1 agent at work');
  await agent.cancel(running);
  await expect(item(page)).toHaveCount(0);
});

/** A plot, a widget, and output of a thread that goes on when the cell ends. */
const LIVELY = `
%matplotlib inline
import ipywidgets, threading
import matplotlib.pyplot as plt
slider = ipywidgets.IntSlider()
shown = display('before', display_id=True)
display(slider)
plt.plot([1, 3, 2])
plt.show()
def go_on():
    for value in range(20):
        slider.value = value
        shown.update(value)
        print('later', value, flush=True)
threading.Thread(target=go_on).start()`;

test('nothing stays at work after cells with plots and widgets, and lost events', async ({
  page,
  panel,
  newAsking,
  request,
  baseURL,
  tmpPath
}) => {
  let isCut = false;
  const sockets: WebSocketRoute[] = [];
  await page.routeWebSocket(/api\/events\/subscribe/, socket => {
    sockets.push(socket);
    const server = socket.connectToServer();
    server.onMessage(message => isCut || socket.send(message));
  });
  await page.reload();
  const path = `${tmpPath}/lively.ipynb`;
  const files = new Files(request, baseURL!);
  await files.write(path, []);
  await OpenNotebook.open(page, path);
  await panel.open();
  const agent = await newAsking('Lively', path);
  const run = async () => {
    const done = await agent.read(await agent.ask(LIVELY), 60);
    expect(done.status, done.text).toBe('ok');
  };
  const isFree = async () => {
    await expect(item(page)).toHaveCount(0, { timeout: 15_000 });
    await expect(panel.region.getByText('Running')).toHaveCount(0);
  };
  for (let cell = 0; cell < 13; cell++) {
    await run();
  }
  await isFree();
  const lastsUntil = (file: string) =>
    `import os, time\nwhile not os.path.exists("${file}"):\n    time.sleep(0.05)\n${LIVELY}`;
  // The page hears that one begins, and then nothing more of it.
  const slow = await agent.ask(lastsUntil('go'));
  await expect(item(page)).toHaveText('1 agent at work');
  isCut = true;
  await files.touch(`${tmpPath}/go`);
  await agent.read(slow, 60);
  const count = sockets.length;
  await sockets[count - 1].close();
  isCut = false;
  // Later, the page has no clock to connect again by.
  await expect.poll(() => sockets.length).toBeGreaterThan(count);
  await isFree();
  // And the same, where nothing but a click makes the page look.
  await page.evaluate(() => {
    const begin = window.setTimeout;
    const beginShort = (...args: Parameters<typeof begin>) =>
      Number(args[1] ?? 0) < 5000 ? begin(...args) : 0;
    window.setTimeout = beginShort as typeof begin;
  });
  const other = await agent.ask(lastsUntil('go-on'));
  await expect(item(page)).toHaveText('1 agent at work');
  isCut = true;
  await files.touch(`${tmpPath}/go-on`);
  await agent.read(other, 60);
  await panel.button('Refresh Agent Activity').click();
  await expect(item(page)).toHaveCount(0);
  await isFree();
});

test('the button names agent and cell, and says that the kernel is free', async ({
  page,
  panel,
  newAsking
}) => {
  const agent = await newAsking('To be stopped');
  await panel.open();
  await panel.show('To be stopped');
  await expect(panel.tool(INTERRUPT)).toBeDisabled();
  await agent.ask('1 + 1').then(asked => agent.read(asked, 30));
  const running = await agent.ask(ENDLESS);
  await begun(agent, running);
  await expect(panel.tool(INTERRUPT)).toHaveAccessibleName(
    /^Stop “analyst”: cell 2/
  );
  const stop = panel.cell(2).getByRole('button', {
    name: 'Stop “analyst”: cell 2'
  });
  await stop.focus();
  await page.keyboard.press('Enter');
  await expect(
    toasts(page, /Stopped “analyst”; the kernel is free\./)
  ).toHaveCount(1);
  await expect(stop).toBeHidden();
  await expect(panel.cell(2)).toBeFocused();
  expect((await agent.read(running)).status).toBe('interrupted');
  await expect(panel.tool(INTERRUPT)).toBeDisabled();
  // It was this page that stopped it.
  await agent.ask('"after it"').then(asked => agent.read(asked, 30));
  await expect(toasts(page, /was stopped/)).toHaveCount(0);
});

test('code that ignores the interrupt is told of', async ({
  page,
  newAsking
}) => {
  const agent = await newAsking('Stubborn');
  await begun(agent, await agent.ask(STUBBORN));
  await expect(item(page)).toHaveText('1 agent at work');
  await page.keyboard.press('ControlOrMeta+Alt+Shift+Period');
  await expect(toasts(page, /^Stop “analyst”: cell 1…$/)).toHaveCount(1);
  await expect(
    toasts(
      page,
      /“analyst”: cell 1 ignored the interrupt and is still running\./
    )
  ).toHaveCount(1);
});

test('the stop key is for the notebook in front, and else asks which', async ({
  page,
  desk,
  newAsking
}) => {
  const key = () => page.keyboard.press('ControlOrMeta+Alt+Shift+Period');
  const status = async (agent: AskingAgent, asked: IExecution) =>
    (await agent.read(asked)).status;
  await desk.open([]);
  const runs: [AskingAgent, IExecution][] = [];
  for (const path of [undefined, desk.path, undefined]) {
    const agent = await newAsking('One of several', path);
    const asked = await agent.ask(ENDLESS);
    await begun(agent, asked);
    runs.push([agent, asked]);
  }
  const [first, here, last] = runs;
  await expect(item(page)).toHaveText('3 agents at work');
  await key();
  await expect(toasts(page, /the kernel is free/)).toHaveCount(1);
  expect(await status(...here)).toBe('interrupted');
  await expect(item(page)).toHaveText('2 agents at work');

  await key();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText('Several agents are at work.')).toBeVisible();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  expect(await status(...first)).toBe('running');
  await key();
  await dialog.getByRole('combobox').selectOption({ index: 1 });
  await dialog.getByRole('button', { name: 'Stop' }).click();
  await expect(item(page)).toHaveText('1 agent at work');
  expect(await status(...last)).toBe('interrupted');
  await key();
  await expect(item(page)).toHaveCount(0);
  expect(await status(...first)).toBe('interrupted');

  // All of them are stopped without a question.
  const asked = await Promise.all(runs.map(([agent]) => agent.ask(ENDLESS)));
  await Promise.all(runs.map(([agent], n) => begun(agent, asked[n])));
  await expect(item(page)).toHaveText('3 agents at work');
  await page.menu.clickMenuItem('Kernel>Agents>Stop All Agents');
  await expect(item(page)).toHaveCount(0);
  for (const [n, [agent]] of runs.entries()) {
    expect(await status(agent, asked[n])).toBe('interrupted');
  }
});

test('the menu and the keyboard open the panel, and stop', async ({
  page,
  panel,
  newAsking
}) => {
  const agent = await newAsking('By menu');
  await page.keyboard.press('ControlOrMeta+Alt+Shift+Comma');
  await expect(panel.region).toBeVisible();
  const running = await agent.ask(ENDLESS);
  await begun(agent, running);
  await expect(item(page)).toHaveText('1 agent at work');
  await page.menu.clickMenuItem('Kernel>Agents>Stop “analyst”: cell 1');
  await expect(toasts(page, /the kernel is free/)).toHaveCount(1);
  await expect
    .poll(() => agent.read(running))
    .toMatchObject({
      status: 'interrupted'
    });
});

test.describe('with an agent that has to ask', () => {
  // A page that is loaded again opens the panel that an earlier test has used.
  test.use({
    policy: { notebook: 'none', scratch: 'always' },
    samePage: false
  });

  test('what asks is notified until it is decided anywhere', async ({
    page,
    panel,
    newAsking,
    server
  }) => {
    const agent = await newAsking('Asks');
    const asked = await agent.ask('print("<b>bold</b>")');
    await expect(item(page)).toHaveText('1 cell needs approval');
    const toast = toasts(
      page,
      /“analyst” \(Full access\) needs approval for cell 1/
    );
    await expect(toast).toContainText('print("<b>bold</b>")');
    await page.reload();
    await expect(toast).toHaveCount(1);
    await toast.getByRole('button', { name: 'Show' }).click();
    await expect(panel.cell(1)).toContainText('needs approval');
    await expect(toast).toHaveCount(0);
    await server.send('post', `executions/${asked.id}/approve`, {
      source_sha256: asked.source_sha256
    });
    await expect(item(page)).toHaveCount(0);

    // While the session is in front, it tells of what asks.
    const seen = await agent.ask('2');
    await expect(panel.cell(2)).toContainText('needs approval');
    await expect(toasts(page, /needs approval/)).toHaveCount(0);
    await agent.cancel(seen);
    await page.activity.closeAll();

    // When the panel comes into sight, it tells of what was notified before.
    const third = await agent.ask('3');
    const covering = toasts(page, /needs approval for cell 3/);
    await expect(covering).toHaveCount(1);
    await page.keyboard.press('ControlOrMeta+Alt+Shift+Comma');
    await expect(covering).toHaveCount(0);
    await agent.cancel(third);
    await page.sidebar.close('right');

    const fourth = await agent.ask('4');
    const other = toasts(page, /needs approval for cell 4/);
    await expect(other).toHaveCount(1);
    await server.send('post', `executions/${fourth.id}/reject`, {
      reason: null
    });
    await expect(other).toHaveCount(0);
  });

  test('the panel follows a session that asks, unless its list is in use', async ({
    page,
    panel,
    newAsking
  }) => {
    await page.setViewportSize({ width: 1280, height: 420 });
    const agent = await newAsking('Far down');
    for (let n = 1; n <= 5; n++) {
      await newAsking(`Above ${n}`);
    }
    await panel.open();
    const session = panel.session('Far down');
    const line = panel.region.getByRole('button', { name: 'far = 1' });
    await expect(panel.sessions).toHaveCount(6);
    await expect(session).not.toBeInViewport();
    await page.mouse.move(5, 5);
    const focused = () =>
      page.evaluate(() => document.activeElement?.outerHTML);
    const before = await focused();
    const first = await agent.ask('far = 1');
    await expect(session).toContainText('Needs approval');
    await expect(session).toBeInViewport();
    await expect(line).toBeInViewport();
    expect(await focused()).toBe(before);
    await agent.cancel(first);
    await expect(session).toContainText('Idle');

    // Who points at the list goes on with what is there; the head has a line.
    await panel.session('Above 5').scrollIntoViewIfNeeded();
    await panel.session('Above 5').hover();
    await expect(session).not.toBeInViewport();
    await agent.ask('far = 1');
    await expect(session).toContainText('Needs approval');
    await expect(line).toBeInViewport();
    await expect(session).not.toBeInViewport();
    await line.click();
    await expect(panel.cell(2)).toContainText('needs approval');
  });

  test('what is switched off is not notified', async ({ page, newAsking }) => {
    const agent = await newAsking('Quiet');
    const set = (approval: boolean) =>
      page.evaluate(async on => {
        const { serviceManager } = window.jupyterapp;
        const id = 'jupyter-agent-exec:notifications';
        await serviceManager.settings.save(
          id,
          JSON.stringify({ approval: on })
        );
      }, approval);
    await set(false);
    await page.reload();
    await agent.ask('1');
    await expect(item(page)).toHaveText('1 cell needs approval');
    await expect(toasts(page, /needs approval/)).toHaveCount(0);
    await set(true);
    await page.reload();
    await expect(toasts(page, /needs approval/)).toHaveCount(1);
  });
});
