/** A real agent: it asks the server over HTTP, as any agent does. */
import { expect } from '@jupyterlab/galata';
import type { APIRequestContext } from '@playwright/test';

const API = 'api/agent-exec';

/** What the tests need to know of an execution. */
export interface IExecution {
  id: string;
  status: string;
}

/** An agent with a session of its own. */
export class Agent {
  private constructor(
    private readonly _request: APIRequestContext,
    private readonly _baseURL: string,
    readonly sessionId: string
  ) {}

  /** Open a session in a scratch kernel. */
  static async open(
    request: APIRequestContext,
    baseURL: string,
    title: string,
    initSource: string | null = null
  ): Promise<Agent> {
    const response = await request.post(`${baseURL}/${API}/sessions`, {
      data: {
        agent: { name: 'analyst', version: '1.2', model: 'any-model' },
        title,
        init_source: initSource
      }
    });
    expect(response.status(), await response.text()).toBe(201);
    const { id } = await response.json();
    return new Agent(request, baseURL, id);
  }

  /** Run a source and wait until it has finished. */
  async run(source: string): Promise<IExecution> {
    const response = await this._post('executions', { source, wait: 30 });
    expect(response.status(), await response.text()).toBe(201);
    return response.json();
  }

  /** Run a source and do not wait. */
  async begin(source: string): Promise<IExecution> {
    const response = await this._post('executions', { source, wait: 0 });
    expect([201, 202], await response.text()).toContain(response.status());
    return response.json();
  }

  /** The status of an execution. */
  async status(id: string): Promise<string> {
    const url = `${this._baseURL}/${API}/executions/${id}`;
    return (await (await this._request.get(url)).json()).status;
  }

  /** Close the session. */
  async close(): Promise<void> {
    const response = await this._post('close', {});
    expect(response.ok(), await response.text()).toBe(true);
  }

  private _post(route: string, data: object) {
    const url = `${this._baseURL}/${API}/sessions/${this.sessionId}/${route}`;
    return this._request.post(url, { data, timeout: 60_000 });
  }
}
