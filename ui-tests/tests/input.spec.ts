/** A person answers what an agent's code asks for while it runs. */
import { expect } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import { expectAccessible } from './axe';
import { test as base } from './panel';

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
}

/** Tests with a session whose code may ask. */
const test = base.extend<{ asks: IAsks }>({
  asks: async ({ request, baseURL }, use, { testId }) => {
    const at = `${baseURL}/${API}`;
    const opened = await request.post(`${at}/sessions`, {
      data: { agent: { name: 'asker' }, title: testId, allow_stdin: true }
    });
    const { id: session } = await opened.json();
    const get = (path: string) =>
      request.get(`${at}/${path}`, { timeout: 60_000 });
    await use({
      title: testId,
      ask: async source => {
        const asked = await request.post(
          `${at}/sessions/${session}/executions`,
          {
            data: { source, wait: 30 },
            timeout: 60_000
          }
        );
        const { id, status } = await asked.json();
        expect(status).toBe('awaiting_input');
        return id;
      },
      finished: async id => {
        await expect
          .poll(
            async () => (await (await get(`executions/${id}`)).json()).status
          )
          .toBe('ok');
        return (await get(`executions/${id}`)).json();
      },
      journal: async () => (await get(`sessions/${session}/journal`)).text()
    });
    await request.post(`${at}/sessions/${session}/close`, { data: {} });
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
