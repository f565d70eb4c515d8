/** What a page shows after a second tab, the network, or the server interfered. */
import { expect } from '@playwright/test';
import type { Page } from '@playwright/test';
import { Agent } from './agent';
import { AskingAgent, Question, Server } from './approval';
import { Gate } from './gate';
import { errorsOfOurs, openLab, test as base } from './lab';
import { codeCell, Files, NotebookAgent, OpenNotebook } from './notebook';
import { OwnServer } from './ownserver';
import { Person } from './person';
import { ProposingAgent, ShownProposals } from './proposing';

/** Prints for as long as nobody stops it. */
const ENDLESS =
  'import time\nwhile True:\n    print("tick", flush=True)\n    time.sleep(0.2)';

/** Until a page has noticed that the server is back. */
const BACK = { timeout: 90_000 };

const test = base.extend<{ gate: Gate; ownServer: OwnServer }>({
  gate: async ({ baseURL }, use) => {
    const gate = await Gate.to(baseURL!);
    await use(gate);
    gate.remove();
  },
  ownServer: async ({}, use) => {
    const server = await OwnServer.prepare({
      AGENT_EXEC_UI_APPROVAL_TIMEOUT: '6'
    });
    await use(server);
    await server.remove();
  }
});

/** Do with JupyterLab's own dialogs what a person does. */
async function dismissDialogs(page: Page): Promise<void> {
  await page.addLocatorHandler(page.locator('.jp-Dialog').first(), dialog =>
    dialog.locator('.jp-Dialog-button').first().click()
  );
}

/** What a page asks of this extension's routes. */
function requestsOf(page: Page): string[] {
  const urls: string[] = [];
  page.on('request', request => {
    if (request.url().includes('/api/agent-exec/')) {
      urls.push(`${request.method()} ${request.url()}`);
    }
  });
  return urls;
}

/** An agent in a notebook that asks. */
async function askingIn(server: Server, path: string, title: string) {
  const { id } = await server.send<{ id: string }>('post', 'sessions', {
    agent: { name: 'analyst' },
    title,
    target: { kind: 'notebook', path }
  });
  return new AskingAgent(server, id);
}

test('what one tab decides, the other shows', async ({
  baseURL,
  context,
  page,
  request,
  server,
  workspace
}) => {
  const path = `${workspace}.ipynb`;
  await new Files(request, baseURL!).write(path, [codeCell('mine', 'x = 1')]);
  const panel = await openLab(page, baseURL!, workspace, path);
  await new OpenNotebook(page, path).ready(request, baseURL!);
  const tab = await context.newPage();
  const other = await openLab(tab, baseURL!, `${workspace}-2`, path);
  await new OpenNotebook(tab, path).ready(request, baseURL!, 2);
  await server.setPolicy({ notebook: 'always', scratch: 'always' });
  const agent = await askingIn(server, path, 'In two tabs');
  const asked = await agent.ask('print(6 * 7)');
  for (const each of [panel, other]) {
    await each.open();
  }
  const there = Question.in(new Person(tab).cell(0));
  await expect(there.node).toBeVisible();

  await page.bringToFront();
  await Question.in(new Person(page).cell(0)).answer('Approve');
  expect((await agent.read(asked, 30)).status).toBe('ok');
  await tab.bringToFront();
  await expect(there.node).toBeHidden();
  await other.show('In two tabs');
  await expect(other.cell(1)).toContainText('Done');

  await other.choose(1, 'Flag');
  await page.bringToFront();
  await panel.show('In two tabs');
  await expect(panel.cell(1)).toContainText('Flagged by');

  await panel.button('Pause agents').click();
  await tab.bringToFront();
  await expect(other.region).toContainText('All agents are paused');
  await other.button('Resume agents').click();
  await page.bringToFront();
  await expect(panel.region).not.toContainText('All agents are paused');
  await agent.close();
});

test('a page that had no network catches up, and asks little meanwhile', async ({
  baseURL,
  gate,
  newAgent,
  page,
  request,
  server,
  workspace
}) => {
  test.slow();
  const errors = errorsOfOurs(page);
  const path = `${workspace}.ipynb`;
  await new Files(request, baseURL!).write(path, [codeCell('mine', 'x = 1')]);
  const panel = await openLab(page, gate.url, workspace, path);
  await dismissDialogs(page);
  const notebook = new OpenNotebook(page, path);
  await notebook.ready(request, baseURL!);
  const agent = await newAgent('Without network');
  const running = await agent.begin(ENDLESS);
  await panel.open();
  await panel.show('Without network');
  await expect(panel.cell(1)).toContainText('tick');

  const asked = requestsOf(page);
  gate.close();
  const alert = panel.region.getByRole('alert').first();
  await expect(alert).toContainText('cannot be reached', BACK);
  await server.send('post', `sessions/${agent.sessionId}/interrupt`, {});
  await expect.poll(() => agent.status(running.id)).toBe('interrupted');
  await agent.run('print("while it was away")');
  await server.setPolicy({ notebook: 'always', scratch: 'none' });
  const asking = await askingIn(server, path, 'Asks meanwhile');
  const question = await asking.ask('print("approved", 6 * 7)');
  expect(asked.length).toBeLessThan(20);

  gate.open();
  await expect(panel.cell(2)).toContainText('while it was away', BACK);
  await expect(panel.cell(1)).toContainText('Interrupted');
  await expect(alert).toBeHidden(BACK);
  await expect(panel.region).toContainText('1 cell needs approval', BACK);
  await expect(page.getByRole('button', { name: /at work/ })).toBeHidden();
  await page.evaluate(async path => {
    await window.jupyterapp.commands.execute('docmanager:open', { path });
  }, path);
  const inNotebook = Question.in(new Person(page).cell(0));
  await expect(inNotebook.node).toBeVisible(BACK);
  const item = page.locator('.jp-NotebookPanel-toolbar .jp-AgentExecStatus');
  await expect(
    item.getByRole('button', { name: /: Needs approval$/ })
  ).toBeVisible();
  await inNotebook.button('Approve').click();
  expect((await asking.read(question, 30)).status).toBe('ok');
  await notebook.last('approved 42\n');
  await asking.close();
  expect(errors).toEqual([]);
});

for (const [signal, reason, status] of [
  ['SIGKILL', 'the server ended unexpectedly', 'Lost'],
  ['SIGTERM', 'the server was stopped', 'Interrupted']
] as const) {
  test(`after a server ended with ${signal}, all is told and goes on`, async ({
    ownServer,
    page,
    request,
    workspace
  }) => {
    test.slow();
    const errors = errorsOfOurs(page);
    await ownServer.start();
    const { url } = ownServer;
    const path = 'notebook.ipynb';
    await new Files(request, url).write(path, [codeCell('mine', 'x = 1')]);
    const panel = await openLab(page, url, workspace, path);
    await dismissDialogs(page);
    const notebook = new OpenNotebook(page, path);
    await notebook.ready(request, url);
    const person = new Person(page);
    const inNotebook = await NotebookAgent.open(request, url, path);
    await inNotebook.begin(ENDLESS);
    await expect(person.badge(1)).toContainText('Running');
    const agent = await Agent.open(request, url, 'Before');
    await agent.begin(ENDLESS);
    await panel.open();
    await panel.show('Before');
    await expect(panel.cell(1)).toContainText('tick');
    await expect(
      page.getByRole('button', { name: '2 agents at work' })
    ).toBeVisible();
    await OpenNotebook.open(page, path);
    const proposing = await ProposingAgent.open(request, url, path);
    await proposing.propose({
      op: 'replace',
      cell_id: 'mine',
      source: 'x = 2'
    });
    const shown = new ShownProposals(page);
    await expect(shown.edits).toHaveCount(1);

    await ownServer.stop(signal);
    await expect(panel.region.getByRole('alert').first()).toContainText(
      'cannot be reached',
      BACK
    );
    await ownServer.start();
    await expect(panel.region.getByRole('alert')).toHaveCount(0, BACK);
    await panel.show('Before');
    await expect(panel.about).toContainText(reason, BACK);
    await expect(panel.cell(1)).toContainText(status);
    await expect(panel.cell(1)).not.toContainText('Running');
    await expect(page.getByRole('button', { name: /at work/ })).toBeHidden(
      BACK
    );
    await OpenNotebook.open(page, path);
    await expect(person.badge(1)).not.toContainText('Running', BACK);
    const after = await Agent.open(request, url, 'After');
    await panel.session('After').click(BACK);
    await after.run('print("a new start")');
    await expect(panel.cell(1)).toContainText('a new start');
    await after.close();
    await OpenNotebook.open(page, path);

    // What nobody decided about in time leaves nothing.
    const server = new Server(request, url);
    await server.setPolicy({ notebook: 'always' });
    const asking = await askingIn(server, path, 'Nobody answers');
    const asked = await asking.ask('print("never")');
    await expect(Question.in(page).node).toBeVisible();
    const expired = await asking.read(asked, 60);
    expect(expired.approval?.status).toBe('expired');
    await expect(page.locator('.jp-AgentExecProposal')).toHaveCount(0);
    const everywhere = JSON.stringify([
      await notebook.cells(),
      await new Files(request, url).cells(path)
    ]);
    expect(everywhere).not.toContain('never');

    // Proposed edits outlive the server; they are kept as before.
    expect(await notebook.cells()).toMatchObject([{ source: 'x = 1' }, {}]);
    await shown.keep(shown.edit('Change this cell'));
    await expect
      .poll(() => notebook.cells())
      .toMatchObject([{ source: 'x = 2' }, {}]);
    await asking.close();
    expect(errors).toEqual([]);
  });
}
