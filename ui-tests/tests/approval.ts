/** What asks for approval, as a person finds it, and an agent that asks. */
import { expect } from '@jupyterlab/galata';
import type { APIRequestContext, Locator, Page } from '@playwright/test';
import { Panel, started } from './panel';

const API = 'api/agent-exec';

/** What a test needs to know of an execution. */
export interface IExecution {
  id: string;
  session_id: string;
  status: string;
  reason: string | null;
  source: string;
  source_sha256: string;
  text: string;
  waiting_for: { who: string } | null;
  approval: { status: string; asked_source: string | null } | null;
}

/** What agents must ask for, by the kind of their target. */
export type Policy = Partial<Record<'kernel' | 'notebook' | 'scratch', string>>;

/** The server's routes, for agents and for people. */
export class Server {
  constructor(
    private readonly _request: APIRequestContext,
    private readonly _baseURL: string
  ) {}

  /** Send something, and read the answer. */
  async send<T>(
    method: 'get' | 'post' | 'put',
    route: string,
    data?: object
  ): Promise<T> {
    const url = `${this._baseURL}/${API}/${route}`;
    const options = { timeout: 60_000, ...(data ? { data } : {}) };
    const response = await this._request[method](url, options);
    expect(response.ok(), await response.text()).toBe(true);
    return response.json();
  }

  setPolicy(policy: Policy): Promise<unknown> {
    return this.send('put', 'approvals/policy', policy);
  }
}

/** An agent that asks. */
export class AskingAgent {
  constructor(
    private readonly _server: Server,
    readonly sessionId: string
  ) {}

  /** Ask for an execution and do not wait. */
  ask(source: string, given: object = {}): Promise<IExecution> {
    const route = `sessions/${this.sessionId}/executions`;
    return this._server.send('post', route, { source, wait: 0, ...given });
  }

  /** An execution as it stands, or as it has ended. */
  read({ id }: IExecution, wait = 0): Promise<IExecution> {
    return this._server.send('get', `executions/${id}?wait=${wait}`);
  }

  /** Wait until the session knows that its kernel is at work. */
  async atWork(): Promise<void> {
    const state = async () => {
      const route = `sessions/${this.sessionId}`;
      const { kernel } = await this._server.send<{
        kernel: { execution_state: string } | null;
      }>('get', route);
      return kernel?.execution_state;
    };
    await expect.poll(state).toBe('busy');
  }

  cancel({ id }: IExecution): Promise<unknown> {
    return this._server.send('post', `executions/${id}/cancel`, {});
  }

  close(): Promise<unknown> {
    return this._server.send('post', `sessions/${this.sessionId}/close`, {});
  }
}

/** Scroll to a place until a button can be pressed: the view may be held at first. */
export async function scrolledTo(
  place: Locator,
  button: Locator
): Promise<void> {
  await expect(async () => {
    await place.scrollIntoViewIfNeeded();
    await expect(button).toBeEnabled({ timeout: 500 });
  }).toPass();
}

/** What asks, somewhere on a page. */
export class Question {
  constructor(readonly node: Locator) {}

  /** The first that asks below an element. */
  static in(place: Page | Locator): Question {
    const name = /^Agent .* needs approval$/;
    return new Question(place.getByRole('group', { name }).first());
  }

  button(name: string): Locator {
    return this.node.getByRole('button', { name, exact: true });
  }

  /** Wait until it is known what a trial did: this moves the buttons, which then rest. */
  async tried(): Promise<void> {
    await expect(this.node).toContainText(/Trial: what|No trial/);
  }

  /** Press a button, once the code is in view and the buttons stay where they are. */
  async answer(name: string): Promise<void> {
    await this.tried();
    const end = this.button('Show the end of the code');
    await expect(async () => {
      if (await end.isVisible()) {
        await end.click();
      }
      await expect(this.button(name)).toBeEnabled({ timeout: 500 });
    }).toPass();
    await this.button(name).click();
  }

  /** The editor with the source. */
  get source(): Locator {
    return this.node.getByRole('textbox', { name: 'Source' });
  }

  /** The lines of the source, as they are shown. */
  async lines(): Promise<string[]> {
    await this.source.waitFor();
    return this.source.locator('.cm-line').allTextContents();
  }

  get outcome(): Locator {
    return this.node.locator('.jp-AgentExecApproval-outcome');
  }
}

/** Tests with a policy, and agents that are closed when the test is over. */
export const test = started.extend<{
  server: Server;
  panel: Panel;
  policy: Policy;
  newAsking: (title: string, path?: string) => Promise<AskingAgent>;
}>({
  policy: [{ notebook: 'always', scratch: 'always' }, { option: true }],
  server: async ({ request, baseURL, policy }, use) => {
    const server = new Server(request, baseURL ?? '');
    await server.setPolicy(policy);
    await use(server);
    await server.setPolicy({ notebook: 'none', scratch: 'none' });
    await server.send('put', 'approvals/pause', { paused: false });
  },
  panel: async ({ page }, use) => {
    await use(new Panel(page));
  },
  newAsking: async ({ server }, use) => {
    const agents: AskingAgent[] = [];
    await use(async (title, path) => {
      const session = await server.send<{ id: string }>('post', 'sessions', {
        agent: { name: 'analyst', version: '1.2', model: 'any-model' },
        title,
        ...(path ? { target: { kind: 'notebook', path } } : {})
      });
      const agent = new AskingAgent(server, session.id);
      agents.push(agent);
      return agent;
    });
    for (const agent of agents) {
      await agent.close();
    }
  }
});
