/** A notebook that a person has open, at a server of a test's own where they sign in. */
import { request as requests } from '@playwright/test';
import type { APIRequestContext, Page } from '@playwright/test';
import { openLab } from './lab';
import { codeCell, Files, OpenNotebook } from './notebook';
import type { OwnServer } from './ownserver';

/** With it the person signs in. */
export const TOKEN = 'the-token-of-the-person';

/** The notebook in its page, and the person's own way to the server. */
export interface ISales {
  notebook: OpenNotebook;
  request: APIRequestContext;
}

/** Sign in, and open `sales.ipynb` with its kernel. */
export async function openSales(
  page: Page,
  server: OwnServer,
  workspace: string
): Promise<ISales> {
  const request = await requests.newContext({
    extraHTTPHeaders: { Authorization: `token ${TOKEN}` }
  });
  await new Files(request, server.url).write('sales.ipynb', [
    codeCell('mine', 'sales = 6')
  ]);
  await page.goto(`${server.url}/lab?token=${TOKEN}`);
  await openLab(page, server.url, workspace);
  const notebook = await OpenNotebook.open(page, 'sales.ipynb');
  await notebook.ready(request, server.url);
  return { notebook, request };
}
