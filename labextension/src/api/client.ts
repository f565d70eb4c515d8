/** The server's routes. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { ApiError, refusal } from './errors';
import { followStream } from './stream';
import { API_NAMESPACE } from '../tokens';
import type {
  IAgentExecApi,
  IAgentSession,
  IExecution,
  IExecutionList,
  IExecutionRange,
  ISessionList,
  ITextRange,
  StreamEvent
} from '../tokens';

/** More than any session's number of executions. */
const BEYOND_LAST = 2 ** 31 - 1;

type Query = Record<string, string | number | null | undefined>;

/** Talks to the server extension with the page's own credentials. */
export class AgentExecApi implements IAgentExecApi {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  get clockOffset(): number {
    return this._clockOffset;
  }

  listSessions(
    after: string | null,
    limit: number,
    status?: IAgentSession['status']
  ): Promise<ISessionList> {
    return this._getJSON(['sessions'], { after, limit, status });
  }

  getSession(id: string): Promise<IAgentSession> {
    return this._getJSON(['sessions', id]);
  }

  listExecutions(id: string, range: IExecutionRange): Promise<IExecutionList> {
    const { after, limit } = range;
    const before =
      after === undefined ? (range.before ?? BEYOND_LAST) : undefined;
    return this._getJSON(['sessions', id, 'executions'], {
      after,
      before,
      limit
    });
  }

  getExecution(id: string): Promise<IExecution> {
    return this._getJSON(['executions', id]);
  }

  getText(id: string, offset: number, limit: number): Promise<ITextRange> {
    return this._getJSON(['executions', id, 'text'], { offset, limit });
  }

  async getNotebook(sessionId: string): Promise<Blob> {
    const response = await this._request(['sessions', sessionId, 'notebook']);
    return response.blob();
  }

  async interrupt(sessionId: string): Promise<void> {
    await this._post(['sessions', sessionId, 'interrupt']);
  }

  async acceptOutputs(executionId: string): Promise<IExecution> {
    const response = await this._post(['executions', executionId, 'accept']);
    return (await response.json()) as IExecution;
  }

  async discardOutputs(executionId: string): Promise<IExecution> {
    const response = await this._post(['executions', executionId, 'discard']);
    return (await response.json()) as IExecution;
  }

  async acceptAllOutputs(sessionId: string): Promise<void> {
    await this._post(['sessions', sessionId, 'accept']);
  }

  follow(id: string, signal: AbortSignal): AsyncIterable<StreamEvent> {
    const open = (lastEventId: string | null, aborted: AbortSignal) =>
      this._fetch(
        ['executions', id, 'stream'],
        {},
        {
          signal: aborted,
          headers: lastEventId ? { 'Last-Event-ID': lastEventId } : {}
        }
      );
    return followStream(open, signal);
  }

  private _post(path: string[]): Promise<Response> {
    return this._request(path, {}, { method: 'POST', body: '{}' });
  }

  private async _getJSON<T>(path: string[], query: Query = {}): Promise<T> {
    const response = await this._request(path, query);
    return (await response.json()) as T;
  }

  private async _request(
    path: string[],
    query: Query = {},
    init: RequestInit = {}
  ): Promise<Response> {
    const response = await this._fetch(path, query, init);
    if (!response.ok) {
      throw await refusal(response);
    }
    return response;
  }

  private async _fetch(
    path: string[],
    query: Query,
    init: RequestInit
  ): Promise<Response> {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== null && value !== undefined) {
        parameters.set(name, String(value));
      }
    }
    const search = parameters.toString();
    const url =
      URLExt.join(
        this._settings.baseUrl,
        API_NAMESPACE,
        ...path.map(encodeURIComponent)
      ) + (search && `?${search}`);
    let response: Response;
    try {
      // With the default, 'no-store', a time stamp is added to the query, and
      // the server refuses parameters that it does not know.
      response = await ServerConnection.makeRequest(
        url,
        { cache: 'no-cache', ...init },
        this._settings
      );
    } catch (error) {
      if (error instanceof ServerConnection.NetworkError) {
        throw new ApiError('unreachable', error.message);
      }
      throw error;
    }
    this._noteClock(response);
    return response;
  }

  /** Learn how far this computer's clock is from the server's. */
  private _noteClock(response: Response): void {
    const date = Date.parse(response.headers.get('Date') ?? '');
    if (!Number.isNaN(date)) {
      // The header has whole seconds: smaller differences mean nothing.
      const offset = date - Date.now();
      this._clockOffset = Math.abs(offset) > 2000 ? offset : 0;
    }
  }

  private _clockOffset = 0;
}
