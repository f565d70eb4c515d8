/** Jupyter AI's chat in JupyterLab: its agent works in the open notebook. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { Question } from './approval';
import { OwnServer } from './ownserver';
import { keep } from './pictures';
import { Process, PROJECT } from './process';
import { openSales, TOKEN } from './sales';

const BIN = join(PROJECT, '.make/jupyter-ai/bin');
const AGENT = join(PROJECT, 'tests/chat/acp_agent.py');

const PERSONA = `
from jupyter_ai_acp_client.base_acp_persona import BaseAcpPersona
from jupyter_ai_persona_manager import PersonaDefaults

class RunningPersona(BaseAcpPersona):
    def __init__(self, *args, **options):
        super().__init__(*args, executable=["${BIN}/python", "${AGENT}"], **options)

    @property
    def defaults(self):
        return PersonaDefaults(name="Runner", description="", avatar_path="", system_prompt="")
`;

test('an agent in the chat works in the open notebook once the card is approved', async ({
  page
}) => {
  const server = await OwnServer.prepare(
    { AGENT_EXEC_UI_TOKEN: TOKEN, PATH: `${BIN}:${process.env.PATH}` },
    join(BIN, 'jupyter-lab')
  );
  const data = { JUPYTER_DATA_DIR: join(server.folder, 'data') };
  const personas = join(server.folder, 'served', '.jupyter', 'personas');
  await mkdir(personas, { recursive: true });
  await writeFile(join(personas, 'running_persona.py'), PERSONA);
  await server.start(data);
  const connecting = new Process(
    join(BIN, 'jupyter'),
    ['agent-exec', 'connect', 'jupyter-ai', '--yes', '--url', server.url],
    { ...process.env, ...data, PATH: `${BIN}:${process.env.PATH}` }
  );
  expect(await connecting.ended(), connecting.errors).toBe(0);

  const { request } = await openSales(page, server, 'chat');
  await page.evaluate(async () => {
    await window.jupyterapp.commands.execute('notebook:run-all-cells');
    await window.jupyterapp.commands.execute('jupyterlab-chat:createAndOpen', {
      name: 'work',
      inSidePanel: true
    });
  });

  const message = page.getByPlaceholder('Type a chat message');
  await message.fill('sales * 7');
  await message.press('Enter');
  const question = Question.in(page.locator('.jp-NotebookPanel:visible'));
  await expect
    .poll(async () => (await question.lines()).at(-1))
    .toBe('sales * 7');
  await question.tried();
  await expect(question.button('Approve')).not.toHaveAttribute(
    'aria-disabled',
    'true'
  );
  await keep(page, 'chat');
  await question.answer('Approve');
  const cell = page.locator('.jp-NotebookPanel:visible .jp-Cell').last();
  await expect(cell.locator('.jp-OutputArea-output')).toHaveText('42');
  await expect(cell).toContainText('“RunningPersona”');
  await expect(page.locator('.jp-chat-rendered-message').last()).toContainText(
    '42'
  );

  const get = async (route: string) =>
    (await request.get(`${server.url}/api/agent-exec/${route}`)).json();
  const { sessions } = await get('sessions');
  expect(sessions).toMatchObject([
    {
      agent: { name: 'RunningPersona' },
      client_id: expect.stringMatching(/^chat /),
      target: { path: 'sales.ipynb' }
    }
  ]);
  await request.dispose();
  await server.remove();
});
