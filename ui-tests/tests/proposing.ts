/** An agent with a token, whose edits are proposed, and what a page shows. */
import { expect } from '@jupyterlab/galata';
import type { APIRequestContext, Locator, Page } from '@playwright/test';
import { scrolledTo } from './approval';

const API = 'api/agent-exec';

/** An agent that proposes edits of a notebook. */
export class ProposingAgent {
  private constructor(
    private readonly _request: APIRequestContext,
    private readonly _url: string,
    private readonly _path: string,
    private readonly _headers: Record<string, string>,
    private readonly _sessionId: string
  ) {}

  /** Get a token from the user, and open a session with it. */
  static async open(
    request: APIRequestContext,
    baseURL: string,
    path: string,
    title?: string
  ): Promise<ProposingAgent> {
    const url = `${baseURL}/${API}`;
    const scopes = ['exec:notebook', 'edit:notebook'];
    const minted = await request.post(`${url}/tokens`, {
      data: { label: 'my token', scopes }
    });
    expect(minted.status(), await minted.text()).toBe(201);
    const { secret } = await minted.json();
    const headers = { Authorization: `Bearer ${secret}` };
    const target = { kind: 'notebook', path };
    const opened = await request.post(`${url}/sessions`, {
      data: { agent: { name: 'analyst' }, title, target },
      headers,
      timeout: 60_000
    });
    expect(opened.status(), await opened.text()).toBe(201);
    const { id } = await opened.json();
    return new ProposingAgent(request, url, path, headers, id);
  }

  /** Propose edits, and tell the cells that they add or change. */
  async propose(...edits: object[]): Promise<string[]> {
    const name = encodeURIComponent(this._path);
    const response = await this._request.patch(
      `${this._url}/notebooks/${name}/cells`,
      {
        data: { session_id: this._sessionId, edits },
        headers: this._headers
      }
    );
    expect(response.status(), await response.text()).toBe(202);
    return (await response.json()).cell_ids.flat();
  }

  /** Ask for an execution and do not wait; tell its id. */
  async ask(
    source: string,
    placement: object | 'end' = 'end'
  ): Promise<string> {
    const response = await this._request.post(
      `${this._url}/sessions/${this._sessionId}/executions`,
      { data: { source, placement, wait: 0 }, headers: this._headers }
    );
    expect([201, 202], await response.text()).toContain(response.status());
    return (await response.json()).id;
  }

  /** What became of the last edit of each cell. */
  async statuses(): Promise<Record<string, string>> {
    const url = `${this._url}/proposals?session_id=${this._sessionId}`;
    const response = await this._request.get(url, { headers: this._headers });
    const { proposals } = await response.json();
    return Object.fromEntries(
      proposals.flatMap(({ edits }: { edits: IEdit[] }) =>
        edits.map(({ cell_id, status }) => [cell_id, status])
      )
    );
  }

  async close(): Promise<void> {
    const url = `${this._url}/sessions/${this._sessionId}/close`;
    await this._request.post(url, { data: {}, headers: this._headers });
  }
}

interface IEdit {
  cell_id: string;
  status: string;
}

/** What a page shows of proposed edits. */
export class ShownProposals {
  constructor(private readonly _page: Page) {}

  get bar(): Locator {
    return this._page.getByRole('region', { name: /^Changes proposed by/ });
  }

  /** All edits. */
  get edits(): Locator {
    return this._page.locator(
      '.jp-NotebookPanel:visible .jp-AgentExecProposed'
    );
  }

  /** The first edit with these words. */
  edit(name: string | RegExp): Locator {
    return this._page.getByRole('group', { name, exact: true }).first();
  }

  async keep(edit: Locator): Promise<void> {
    const pressed = edit.getByRole('button', { name: 'Keep', exact: true });
    await scrolledTo(edit, pressed); // what is new has to have been in view
    await pressed.click();
  }

  /** Reject an edit with a reason, which may be empty. */
  async reject(edit: Locator, reason = ''): Promise<void> {
    await edit.getByRole('button', { name: 'Reject…' }).click();
    const field = this._page.getByRole('textbox', { name: /^Reason/ });
    await field.fill(reason);
    await field.press('Enter');
  }

  async all(
    button: 'Keep all' | 'Reject all' | 'Next' | 'Undo' | 'Dismiss'
  ): Promise<void> {
    await this.bar.getByRole('button', { name: button, exact: true }).click();
  }
}
