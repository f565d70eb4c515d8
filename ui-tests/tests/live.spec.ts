/** An agent and a person at once in a notebook that is open, without collaboration. */
import { expect } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';
import { codeCell, Files, NotebookAgent, OpenNotebook } from './notebook';
import { started } from './panel';
import { Person } from './person';

/** A folder with notebooks, the person who opens them, and agents. */
interface ILive {
  files: Files;
  person: Person;
  /** The contents path of a name. */
  path(name: string): string;
  /** Write a notebook with these cells and open it. */
  open(cells: object[], name?: string): Promise<OpenNotebook>;
  /** Open a notebook that is there. */
  show(name: string): Promise<OpenNotebook>;
  attach(name?: string, agent?: string): Promise<NotebookAgent>;
  /** The kernels of the folder's notebooks. */
  kernels(): Promise<string[]>;
  /** Let code go on that waits at a gate. */
  pass(gate: string): Promise<void>;
}

/** What ties a notebook to a kernel. */
interface ISession {
  id: string;
  path: string;
  kernel: { id: string };
}

const test = started.extend<{ live: ILive }>({
  live: async ({ page, request, baseURL, tmpPath }, use) => {
    const files = new Files(request, baseURL!);
    const agents: NotebookAgent[] = [];
    const path = (name: string) => `${tmpPath}/${name}`;
    const show = async (name: string) => {
      const notebook = await OpenNotebook.open(page, path(name));
      await notebook.ready(request, baseURL!);
      return notebook;
    };
    const sessions = async (): Promise<ISession[]> => {
      const all = await request.get(`${baseURL}/api/sessions`);
      return (await all.json()).filter(({ path }: ISession) =>
        path.startsWith(`${tmpPath}/`)
      );
    };
    await use({
      files,
      person: new Person(page),
      path,
      open: async (cells, name = 'live.ipynb') => {
        await files.write(path(name), cells);
        const notebook = await show(name);
        await notebook.connected();
        return notebook;
      },
      show,
      kernels: async () => (await sessions()).map(({ kernel }) => kernel.id),
      attach: async (name = 'live.ipynb', agent = 'analyst') => {
        const opened = await NotebookAgent.open(
          request,
          baseURL!,
          path(name),
          agent
        );
        agents.push(opened);
        return opened;
      },
      pass: gate => files.touch(path(gate))
    });
    await Promise.all(agents.map(agent => agent.close()));
  }
});

/** Code that waits in the kernel until the test lets it pass. */
const gate = (name: string) =>
  `import os, time\nwhile not os.path.exists("${name}"):\n    time.sleep(0.02)\n`;

/** Lines as they are printed, told apart by who prints them. */
const lines = (who: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${who} ${n}\n`).join('');

/** Code that prints lines, each of them flushed. */
const printing = (who: string, count: number) =>
  `for n in range(${count}):\n    print("${who}", n, flush=True)\n`;

/** Hold what the page saves of a file. */
async function holdSaves(page: Page, path: string) {
  let begin = () => {};
  let release = () => {};
  const begun = new Promise<void>(resolve => (begin = resolve));
  const released = new Promise<void>(resolve => (release = resolve));
  await page.route(`**/api/contents/${path}?*`, async route => {
    if (route.request().method() === 'PUT') {
      begin();
      await released;
    }
    await route.fallback();
  });
  return { begun, release: () => release() };
}

/** Watch for changes that the server asks of the page, with a text in them. */
async function watchChanges(page: Page, text: string) {
  const [real] = page.context().pages(); // what Galata gives is around it
  const client = await real.context().newCDPSession(real);
  await client.send('Network.enable');
  const came = new Promise<void>(resolve =>
    client.on('Network.webSocketFrameReceived', ({ response }) => {
      const { payloadData } = response;
      if (payloadData.includes('"apply"') && payloadData.includes(text)) {
        resolve();
      }
    })
  );
  return { came };
}

test('what runs behind the cells above is not aborted by an agent’s error', async ({
  live
}) => {
  const { person } = live;
  const notebook = await live.open(
    ['a', 'b', 'c', 'd'].map(id => codeCell(id, `print("${id}")`))
  );
  const agent = await live.attach();
  const { id } = await agent.begin(`${gate('go')}1 / 0`);
  await expect(person.badge(4)).toContainText('Running');
  await person.select(3);
  await person.choose('Run', 'Run All Above Selected Cell');
  await expect(person.prompt(2)).toHaveText('[*]:');
  await live.pass('go');
  expect((await agent.execution(id, 60)).status).toBe('error');
  await expect(person.prompt(2)).toHaveText('[4]:');
  expect((await notebook.cells()).map(({ text }) => text).slice(0, 4)).toEqual([
    'a\n',
    'b\n',
    'c\n',
    ''
  ]);
});

test('a person restarts the kernel while an agent’s code runs', async ({
  live,
  page
}) => {
  const { person } = live;
  const notebook = await live.open([codeCell('mine', 'y = 1')]);
  const agent = await live.attach();
  const { id } = await agent.begin(
    `x = 1\nprint("begun", flush=True)\n${gate('never')}`
  );
  await expect(person.cell(1)).toContainText('begun');
  await person.restart();
  const ended = await agent.execution(id, 60);
  expect(ended).toMatchObject({
    status: 'interrupted',
    reason: 'A user restarted the kernel. Its variables are gone.',
    text: expect.stringContaining('begun')
  });
  await expect(person.badge(1)).toContainText('Interrupted');
  await expect(page.getByText(/died/i)).toHaveCount(0);
  const next = await agent.execute({
    source: 'print("x" in globals())',
    wait: 60
  });
  expect(next).toMatchObject({
    status: 'ok',
    text: expect.stringMatching(/^False\n/),
    execution_count: 1,
    kernel: { restarted: true, reason: 'restarted' }
  });
  await agent.via(next.id);
  expect(await notebook.cells()).toMatchObject([
    { source: 'y = 1', text: '' },
    // ipykernel may warn of a socket that the restart has closed.
    { text: expect.stringMatching(/^begun\n/), state: 'idle' },
    { text: 'False\n', state: 'idle', execution_count: 1 }
  ]);
});

test('an agent goes with a notebook that the person renames', async ({
  live
}) => {
  const { person } = live;
  const before = await live.open([codeCell('mine', 'x = 1')]);
  const agent = await live.attach();
  await agent.run('print("before")');
  const { id } = await agent.begin(
    `print("one", flush=True)\n${gate('go')}print("two")`
  );
  await expect(person.cell(2)).toContainText('one');
  const notebook = await person.rename(before, 'renamed.ipynb');
  await live.pass('go');
  await agent.via(id);
  const next = await agent.execute({ source: 'print("after")', wait: 60 });
  expect(next.document?.path).toBe(notebook.path);
  expect(await agent.path()).toBe(notebook.path);
  expect(await agent.journal()).toContainEqual(
    expect.objectContaining({ type: 'notebook_moved', path: notebook.path })
  );
  const texts = ['', 'before\n', 'one\ntwo\n', 'after\n'];
  expect((await notebook.cells()).map(({ text }) => text)).toEqual(texts);
  await notebook.save();
  const saved = await live.files.cells(notebook.path);
  expect(saved.map(({ text }) => text)).toEqual(texts);
  await expect(person.dialog).toHaveCount(0);
});

test('an image of an agent’s cell is enlarged, one of the person’s is not', async ({
  live,
  page
}) => {
  const picture =
    'from base64 import b64decode\nfrom IPython.display import Image\n' +
    'Image(b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))';
  await live.open([codeCell('mine', picture)]);
  await live.person.run(0);
  const images = page.locator('.jp-NotebookPanel:visible .jp-RenderedImage');
  await expect(images).toHaveCount(1);
  const agent = await live.attach();
  const { id } = await agent.begin(picture);
  await agent.execution(id, 30);
  await expect(images).toHaveCount(2);
  await images.first().getByRole('img').click();
  const dialog = page.getByRole('dialog');
  await images.last().getByRole('img').click();
  await expect(dialog.getByRole('status')).toHaveText('[2] · image 1 of 1');
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
});

test('a person stops an agent, and the agent is told', async ({
  live,
  page
}) => {
  await live.open([codeCell('mine', 'x = 1')]);
  const agent = await live.attach();
  const { id } = await agent.begin('import time\ntime.sleep(600)');
  const waiting = await agent.begin('print("not run")');
  await page
    .locator('.jp-AgentExecBadge')
    .getByRole('button', { name: 'Stop “analyst”: cell 1' })
    .click();
  const [stopped, taken] = await Promise.all(
    [id, waiting.id].map(each => agent.execution(each, 60))
  );
  expect(stopped.status).toBe('interrupted');
  expect(stopped.reason).toMatch(/^Interrupted by .+\.$/);
  expect(taken.status).toBe('cancelled');
  expect(taken.reason).toMatch(/^Interrupted by .+\. It was not run\.$/);
});

test('two views of a notebook in one page show one cell', async ({
  live,
  page
}) => {
  const { person } = live;
  const notebook = await live.open([codeCell('mine', 'x = 1')]);
  await person.choose('File', 'New View for Notebook');
  const panels = page.locator('.jp-NotebookPanel:visible');
  await expect(panels).toHaveCount(2);
  const agent = await live.attach();
  expect(await agent.run(printing('line', 200))).toBe('tab');
  expect((await notebook.cells()).map(({ text }) => text)).toEqual([
    '',
    lines('line', 200)
  ]);
  for (let n = 0; n < 2; n++) {
    await expect(panels.nth(n).locator('.jp-CodeCell')).toHaveCount(2);
    await expect(panels.nth(n)).toContainText('line 199');
  }
});

for (const answer of ['Save', 'Discard'] as const) {
  test(`all is in the file of a notebook that is closed in the middle with ${answer}`, async ({
    live
  }) => {
    const { person } = live;
    await live.open([codeCell('mine', 'x = 1')]);
    const agent = await live.attach();
    const { id } = await agent.begin(
      printing('before', 100) + gate('go') + printing('after', 100)
    );
    await expect(person.cell(1)).toContainText('before 99');
    await person.close(answer);
    await live.pass('go');
    expect(await agent.via(id)).toBe('contents');
    const cells = await live.files.cells(live.path('live.ipynb'));
    expect(cells.map(({ text }) => text)).toEqual([
      '',
      lines('before', 100) + lines('after', 100)
    ]);
  });
}

test('a notebook that is opened while an agent works has its cell once', async ({
  live
}) => {
  const { files, person } = live;
  const path = live.path('live.ipynb');
  await files.write(path, [codeCell('mine', 'x = 1')]);
  const agent = await live.attach();
  const { id } = await agent.begin(
    printing('before', 100) + gate('go') + printing('after', 100)
  );
  // In the moment of a save, Jupyter gives a file that cannot be read.
  await expect(async () =>
    expect((await files.cells(path))[1].text).toContain('before')
  ).toPass();
  const kernels = await live.kernels();
  const notebook = await live.show('live.ipynb');
  await expect.poll(async () => [await person.kernelId()]).toEqual(kernels);
  await live.pass('go');
  expect(await agent.via(id)).toBe('tab');
  const texts = ['', lines('before', 100) + lines('after', 100)];
  expect((await notebook.cells()).map(({ text }) => text)).toEqual(texts);
  await notebook.save();
  await expect(person.dialog).toHaveCount(0);
  expect((await files.cells(path)).map(({ text }) => text)).toEqual(texts);
});

test('a person runs the agent’s cell while that runs, and its outputs are theirs', async ({
  live
}) => {
  const { files, person } = live;
  const notebook = await live.open([codeCell('mine', 'x = 1')]);
  const agent = await live.attach();
  const { id } = await agent.begin(
    'runs = globals().get("runs", 0) + 1\nprint("run", runs, flush=True)\n' +
      gate('go') +
      printing('line', 200)
  );
  await expect(person.cell(1)).toContainText('run 1');
  await person.run(1);
  await expect(person.cell(1)).not.toContainText('run 1');
  await live.pass('go');
  expect((await agent.execution(id, 60)).text).toBe(
    `run 1\n${lines('line', 200)}`
  );
  expect(await agent.via(id)).toBe('tab');
  await expect(person.prompt(1)).toHaveText('[2]:');
  await expect(person.badge(1)).toContainText('Run again since');
  const text = `run 2\n${lines('line', 200)}`;
  expect((await notebook.cells())[1]).toMatchObject({ text, state: 'idle' });
  await notebook.save();
  expect((await files.cells(notebook.path))[1].text).toBe(text);
  // What an agent runs in the cell next is shown there as ever.
  const next = await agent.execute({
    placement: { cell: id },
    source: 'print("next")',
    wait: 60
  });
  expect(await agent.via(next.id)).toBe('tab');
  expect((await notebook.cells())[1].text).toBe('next\n');
});

test('what comes while a notebook is saved at its closing is in the file', async ({
  live,
  page
}) => {
  const { files, person } = live;
  const notebook = await live.open([codeCell('mine', 'x = 1')]);
  const agent = await live.attach();
  const { id } = await agent.begin(
    printing('before', 100) + gate('go') + printing('after', 100)
  );
  await expect(person.cell(1)).toContainText('before 99');
  const saving = await holdSaves(page, notebook.path);
  const changes = await watchChanges(page, 'after 0');
  const closed = person.close('Save');
  await saving.begun;
  await live.pass('go');
  await changes.came;
  saving.release();
  await closed;
  expect(await agent.via(id)).toBe('contents');
  expect((await files.cells(notebook.path)).map(({ text }) => text)).toEqual([
    '',
    lines('before', 100) + lines('after', 100)
  ]);
});
