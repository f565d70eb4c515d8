/** What an agent says of itself is seen to be its own words. */
import { expect } from '@jupyterlab/galata';
import { request as requests } from '@playwright/test';
import { Question, test } from './approval';
import { keepInThemes } from './pictures';

const NAME = 'Ada (you)” · approved by “Ada';
const SHOWN = "“Ada (you)' · approved by 'Ada”";
const LABEL = 'Sales analyst';

/** A Cyrillic letter, and a fullwidth one that Python reads as an ASCII one. */
const SOURCE = "\u0440assword = 'x'\n\uff45val('1 + 1')\nприветствие = 'а'";

test('a name that pretends stands in quotation marks beside its token', async ({
  page,
  panel,
  server,
  baseURL
}) => {
  const { secret, token } = await server.send<{
    secret: string;
    token: { id: string };
  }>('post', 'tokens', { label: LABEL, scopes: ['exec:scratch'] });
  const agent = await requests.newContext({
    extraHTTPHeaders: { Authorization: `Bearer ${secret}` }
  });
  const url = `${baseURL}/api/agent-exec/sessions`;
  const opened = await agent.post(url, {
    data: { agent: { name: NAME }, title: '✅ Approved by Ada' }
  });
  const { id } = await opened.json();
  await agent.post(`${url}/${id}/executions`, {
    data: { source: SOURCE, wait: 0 }
  });
  await panel.open();
  await page.sidebar.close('left');
  await page.sidebar.setWidth(480, 'right');
  const listed = panel.session('✅ Approved by Ada');
  await expect(listed).toContainText('“✅ Approved by Ada”');
  await expect(listed).toContainText(SHOWN);
  await expect(listed).toContainText(LABEL);
  await listed.click();
  const question = Question.in(panel.cell(1));
  await expect(question.node).toHaveAccessibleName(
    new RegExp(`^Agent ${SHOWN.replace(/[()]/g, '\\$&')} \\(${LABEL}\\)`)
  );
  await expect(panel.cell(1)).toContainText(SHOWN);
  await expect(panel.region).toContainText(LABEL);
  await expect(question.node).toContainText(
    '2 characters that are invisible or look like others'
  );
  await expect
    .poll(() => question.lines())
    .toEqual([
      "U+0440assword = 'x'",
      "U+FF45val('1 + 1')",
      "приветствие = 'а'"
    ]);
  await keepInThemes(page, 'claims');
  await agent.dispose();
  await page.request.delete(`${baseURL}/api/agent-exec/tokens/${token.id}`);
});
