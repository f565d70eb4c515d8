/** A person answers what an agent's code asks for while it runs. */
import { expect } from '@jupyterlab/galata';
import type { APIRequestContext, Locator } from '@playwright/test';
import { expectAccessible } from './axe';
import { codeCell, Files, OpenNotebook } from './notebook';
import { test as base } from './panel';
import { shown } from './trust';

const API = 'api/agent-exec';

const PASSWORD = 'open sesame 4711';

interface IAsks {
  /** The session's title. */
  title: string;
  /** Run a source; return its id when it asks. */
  ask: (source: string) => Promise<string>;
  /** An execution, when it has finished. */
  finished: (id: string) => Promise<{ status: string; text: string }>;
  /** All that is recorded of the session. */
  journal: () => Promise<string>;
  close: () => Promise<void>;
}

/** Open a session whose code may ask; in a notebook it runs at the end. */
async function openAsker(
  request: APIRequestContext,
  baseURL: string,
  title: string,
  target: { kind: string; path?: string } = { kind: 'scratch' }
): Promise<IAsks> {
  const at = `${baseURL}/${API}`;
  const opened = await request.post(`${at}/sessions`, {
    data: { agent: { name: 'asker' }, title, allow_stdin: true, target },
    timeout: 60_000
  });
  const { id: session } = await opened.json();
  const get = (path: string) =>
    request.get(`${at}/${path}`, { timeout: 60_000 });
  return {
    title,
    ask: async source => {
      const asked = await request.post(`${at}/sessions/${session}/executions`, {
        data: {
          source,
          wait: 30,
          ...(target.kind === 'notebook' && { placement: 'end' })
        },
        timeout: 60_000
      });
      const { id, status } = await asked.json();
      expect(status).toBe('awaiting_input');
      return id;
    },
    finished: async id => {
      await expect
        .poll(async () => (await (await get(`executions/${id}`)).json()).status)
        .toBe('ok');
      return (await get(`executions/${id}`)).json();
    },
    journal: async () => (await get(`sessions/${session}/journal`)).text(),
    close: async () => {
      await request.post(`${at}/sessions/${session}/close`, { data: {} });
    }
  };
}

/** Tests with a session whose code may ask. */
const test = base.extend<{ asks: IAsks }>({
  asks: async ({ request, baseURL }, use, { testId }) => {
    const asks = await openAsker(request, baseURL!, testId);
    await use(asks);
    await asks.close();
  }
});

function field(cell: Locator, prompt: string): Locator {
  return cell.getByLabel(prompt);
}

test('a person answers in the cell, one question after the other', async ({
  page,
  panel,
  asks
}) => {
  const id = await asks.ask(
    'first = input("First name? ")\nprint("hello", first, input("Last name? "))'
  );
  await panel.open();
  await panel.show(asks.title);
  const cell = panel.cell(1);
  await expect(cell).toContainText('Needs input');
  await field(cell, 'First name?').fill('Ada');
  await page.keyboard.press('Enter');
  // The keyboard goes on where it was.
  await expect(field(cell, 'Last name?')).toBeFocused();
  await expectAccessible(page);
  await page.screenshot({ path: test.info().outputPath('asks.png') });
  await field(cell, 'Last name?').focus();
  await page.keyboard.type('Lovelace');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(cell).toContainText('hello Ada Lovelace');
  await expect(cell.locator('.jp-AgentExecInput')).toBeHidden();
  expect((await asks.finished(id)).text).toContain('hello Ada Lovelace');
});

test('a password is not shown and not recorded', async ({
  page,
  panel,
  asks
}) => {
  const id = await asks.ask('import getpass\nlen(getpass.getpass("Key: "))');
  await panel.open();
  await panel.show(asks.title);
  const cell = panel.cell(1);
  const key = field(cell, 'Key:');
  await expect(key).toHaveAttribute('type', 'password');
  await expect(cell).toContainText('It is not recorded');
  await key.fill(PASSWORD);
  await cell.getByRole('button', { name: 'Send' }).click();
  const { text } = await asks.finished(id);
  expect(text.trim()).toBe(String(PASSWORD.length));
  expect(await asks.journal()).not.toContain(PASSWORD);
  await expect(cell).toContainText('Done');
  expect(await page.content()).not.toContain(PASSWORD);
});

test('what is asked in a notebook is told, and answered at its cell', async ({
  page,
  panel,
  request,
  baseURL,
  tmpPath
}) => {
  const path = `${tmpPath}/asks.ipynb`;
  await new Files(request, baseURL!).write(path, [codeCell('mine', 'x = 1')]);
  await (await OpenNotebook.open(page, path)).ready(request, baseURL!);
  const asks = await openAsker(request, baseURL!, 'in a notebook', {
    kind: 'notebook',
    path
  });
  await page.evaluate(async () => {
    await window.jupyterapp.commands.execute('launcher:create');
  });
  const id = await asks.ask('print("hello", input("Whom? "))');
  const told = page.locator('.jp-toast-message, .Toastify__toast');
  await expect(told.first()).toContainText('“asker”');
  await expect(told.first()).toContainText('needs input for cell 1: Whom?');
  await expect(
    page.getByRole('button', { name: '1 cell needs input' })
  ).toBeVisible();
  await panel.open();
  await expect(told).toHaveCount(0);
  await panel.button('Answer').click();
  const answer = field(shown(page, 1), 'Whom?');
  await expect(answer).toBeFocused();
  await page.screenshot({ path: test.info().outputPath('asks-here.png') });
  await expectAccessible(page);
  await page.keyboard.type('Ada');
  await page.keyboard.press('Enter');
  await expect(shown(page, 1)).toContainText('hello Ada');
  await expect(page.locator('.jp-AgentExecInput')).toHaveCount(0);
  expect((await asks.finished(id)).text).toContain('hello Ada');
  await asks.close();
});
