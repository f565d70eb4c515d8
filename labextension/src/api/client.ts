/** The server's routes. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { ApiError, refusal } from './errors';
import { API_NAMESPACE } from '../wire';
import type {
  EditDecision,
  IAgentSession,
  IApprovalList,
  GrantSpan,
  ICheckpointList,
  IKernelRunList,
  IExecution,
  IExecutionList,
  IJournalEventList,
  IKeepEdits,
  IPreview,
  IProposalList,
  IRejectEdits,
  IReview,
  IRoundUndone,
  ISearchResults,
  ISessionList,
  ITextRange,
  IUnlocked
} from '../wire';

/** Executions read at once. */
export const PAGE = 200;

/** What shows that the passphrase was typed in this page. */
const UNLOCK_HEADER = 'X-Agent-Exec-Unlock';

type Query = Record<string, string | number | boolean | null | undefined>;

/** A part of a list of executions. */
export interface IExecutionRange {
  /** Only those with a greater number. */
  after: number;
  limit: number;
  /** Leave large outputs out. */
  brief?: boolean;
}

/** What a user says besides that they keep or reject an edit. */
export type IDecisionDetails = Partial<Omit<IKeepEdits & IRejectEdits, 'ids'>>;

/** The server, as the models see it. */
export type IAgentExecApi = Pick<AgentExecApi, keyof AgentExecApi>;

/** All executions of a session, in order, without large outputs. */
export async function allExecutions(
  api: Pick<IAgentExecApi, 'listExecutions'>,
  sessionId: string
): Promise<IExecution[]> {
  const all: IExecution[] = [];
  let after: number | null = 0;
  while (after !== null) {
    const page: IExecutionList = await api.listExecutions(sessionId, {
      after,
      brief: true,
      limit: PAGE
    });
    all.push(...page.executions);
    after = page.next_after;
  }
  return all;
}

/**
 * Talks to the server extension with the page's own credentials.
 *
 * Of what agents put out it gets inert copies only. Failures reject with an
 * `ApiError`.
 */
export class AgentExecApi {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  /** Milliseconds to add to this computer's clock to get the server's. */
  get clockOffset(): number {
    return this._clockOffset;
  }

  listSessions(
    after: string | null,
    limit: number,
    filter: { status?: IAgentSession['status'] } = {}
  ): Promise<ISessionList> {
    return this._request('GET', ['sessions'], {
      after,
      limit,
      ...filter
    });
  }

  getSession(id: string): Promise<IAgentSession> {
    return this._request('GET', ['sessions', id]);
  }

  listExecutions(id: string, range: IExecutionRange): Promise<IExecutionList> {
    const { after, brief, limit } = range;
    const outputs = brief ? 'brief' : undefined;
    const query = { after, inert: true, limit, outputs };
    return this._request('GET', ['sessions', id, 'executions'], query);
  }

  getExecution(id: string): Promise<IExecution> {
    return this._request('GET', ['executions', id], { inert: true });
  }

  getText(id: string, offset: number, limit: number): Promise<ITextRange> {
    return this._request('GET', ['executions', id, 'text'], {
      offset,
      limit
    });
  }

  async getNotebook(sessionId: string): Promise<Blob> {
    const response = await this._respond(['sessions', sessionId, 'notebook']);
    return response.blob();
  }

  /** A session as a notebook for somebody else, once the server has tried it. */
  async shareNotebook(sessionId: string): Promise<Blob> {
    const path = ['sessions', sessionId, 'notebook', 'share'];
    const init = { method: 'POST', body: '{}' };
    return (await this._respond(path, {}, init)).blob();
  }

  /** The address of a session's notebook, for the browser to download. */
  notebookURL(sessionId: string): string {
    return this._url(['sessions', sessionId, 'notebook']);
  }

  /** The address of what the server gave a path to, as an image's. */
  blobURL(path: string): string {
    return new URL(path, this._settings.baseUrl).href;
  }

  async interrupt(sessionId: string): Promise<void> {
    await this._request('POST', ['sessions', sessionId, 'interrupt']);
  }

  closeSession(id: string): Promise<IAgentSession> {
    return this._request('POST', ['sessions', id, 'close']);
  }

  /** The edits that agents propose: open ones of a notebook, or all of a session. */
  listProposals(
    path: string | null,
    session_id?: string
  ): Promise<IProposalList> {
    return this._request('GET', ['proposals'], { path, session_id });
  }

  /** Keep or reject proposed edits, or undo that. */
  decideEdits(
    what: EditDecision,
    sessionId: string,
    ids: readonly string[],
    more: IDecisionDetails = {}
  ): Promise<IProposalList> {
    return this._request('POST', ['sessions', sessionId, 'proposals', what], {
      ids,
      ...more
    });
  }

  /** Entries between a session's cells, after a position in its journal. */
  listEvents(
    id: string,
    after: number | null,
    limit: number
  ): Promise<IJournalEventList> {
    return this._request('GET', ['sessions', id, 'events'], {
      after,
      limit
    });
  }

  /** The newest cells with words in source, output, error or purpose. */
  search(q: string, limit: number): Promise<ISearchResults> {
    return this._request('GET', ['search'], { q, limit });
  }

  getApprovals(): Promise<IApprovalList> {
    return this._request('GET', ['approvals']);
  }

  /** What a trial of an execution that needs approval showed. */
  getPreview(id: string): Promise<IPreview> {
    return this._request('GET', ['executions', id, 'preview']);
  }

  /** Let it run; `span` says what else its agent may, `source` runs instead. */
  approve(
    id: string,
    sha256: string,
    source?: string,
    span?: GrantSpan | 'once'
  ): Promise<IExecution> {
    const body = {
      source_sha256: sha256,
      source,
      ...(span === 'once' ? { once: true } : { grant: span })
    };
    return this._request('POST', ['executions', id, 'approve'], body);
  }

  reject(id: string, reason: string | null): Promise<IExecution> {
    return this._request('POST', ['executions', id, 'reject'], { reason });
  }

  /**
   * Answer what the code of an execution asks for.
   *
   * @param askedAt - Of the input that is answered.
   */
  giveInput(id: string, value: string, askedAt: string): Promise<IExecution> {
    const body = { value, asked_at: askedAt };
    return this._request('POST', ['executions', id, 'input'], body);
  }

  /** Put an execution's original outputs into its cell, and trust the cell. */
  acceptOutputs(id: string): Promise<IExecution> {
    return this._request('POST', ['executions', id, 'accept']);
  }

  /** Say what a user thinks of an execution. */
  review(
    id: string,
    said: Pick<IReview, 'verdict' | 'comment'>
  ): Promise<IExecution> {
    return this._request('PUT', ['executions', id, 'review'], said);
  }

  /** What an undo of executions in a kernel could bring back. */
  getCheckpoints(kernelId: string): Promise<ICheckpointList> {
    return this._request('GET', ['kernels', kernelId, 'checkpoints']);
  }

  /** What was seen to run in a kernel, and whose outputs are out of date. */
  listKernelRuns(kernelId: string): Promise<IKernelRunList> {
    return this._request('GET', ['kernels', kernelId, 'runs']);
  }

  /** Keep a checkpoint of a kernel before each execution of an agent. */
  keepCheckpoints(kernelId: string): Promise<ICheckpointList> {
    const body = { enabled: true };
    return this._request('PUT', ['kernels', kernelId, 'checkpoints'], body);
  }

  /** Make the kernel as it was before an execution. */
  undo(id: string): Promise<unknown> {
    return this._request('POST', ['executions', id, 'undo'], {});
  }

  /**
   * Take back what a session changed in its notebook, or make it again.
   *
   * @param since - From this moment on; null for all.
   */
  changeRound(
    what: 'undo' | 'redo',
    sessionId: string,
    since: string | null = null
  ): Promise<IRoundUndone> {
    const body = since === null ? {} : { since };
    return this._request('POST', ['sessions', sessionId, 'round', what], body);
  }

  /** Let a session's agent ask again before it runs code in that kernel. */
  withdrawGrant(sessionId: string): Promise<IAgentSession> {
    const path = ['sessions', sessionId, 'grant'];
    return this._request('DELETE', path);
  }

  setPaused(paused: boolean): Promise<IApprovalList> {
    return this._request('PUT', ['approvals', 'pause'], { paused });
  }

  /** Show the server's passphrase; decisions are taken for some minutes then. */
  async unlock(passphrase: string): Promise<void> {
    const body = { passphrase };
    this.#unlock = (
      await this._request<IUnlocked>('POST', ['unlock'], body)
    ).unlock;
  }

  /**
   * Asks the person for the passphrase when a decision needs it.
   *
   * False if they do not give it: the decision is refused then.
   */
  askPassphrase: (() => Promise<boolean>) | null = null;

  /** What happens to an execution; the browser resumes where it broke off. */
  follow(id: string): EventSource {
    const { appendToken, token } = this._settings;
    const query = { inert: 'true', ...(appendToken && token && { token }) };
    const url = this._url(['executions', id, 'stream']);
    return new EventSource(url + URLExt.objectToQueryString(query));
  }

  /**
   * Send a request to a route, and give what it answers.
   *
   * @param data - The body, or with GET the query.
   */
  private async _request<T>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: readonly string[],
    data: object = {}
  ): Promise<T> {
    const isRead = method === 'GET';
    const response = await this._respond(path, isRead ? (data as Query) : {}, {
      method,
      body: isRead || method === 'DELETE' ? undefined : JSON.stringify(data)
    });
    if (response.status === 204) {
      return undefined as T;
    }
    try {
      return (await response.json()) as T;
    } catch (error) {
      // The connection broke, or something before the server answered.
      throw new ApiError('unreachable', String(error), response.status);
    }
  }

  private async _respond(
    path: readonly string[],
    query: Query = {},
    init: RequestInit = {}
  ): Promise<Response> {
    const response = await this._fetch(path, query, init);
    if (response.ok) {
      return response;
    }
    const error = await refusal(response);
    if (error.code !== 'passphrase_required' || !(await this._isUnlocked())) {
      throw error;
    }
    const again = await this._fetch(path, query, init);
    if (!again.ok) {
      throw await refusal(again);
    }
    return again;
  }

  /** Ask the person for the passphrase, once for all that wait for it. */
  private _isUnlocked(): Promise<boolean> {
    this._asking ??= (this.askPassphrase?.() ?? Promise.resolve(false)).finally(
      () => (this._asking = null)
    );
    return this._asking;
  }

  private _fetch(
    path: readonly string[],
    query: Query,
    init: RequestInit
  ): Promise<Response> {
    const given = Object.entries(query).filter(
      ([, value]) => value !== null && value !== undefined
    );
    const search = new URLSearchParams(
      given.map(([name, value]) => [name, String(value)])
    ).toString();
    const url = this._url(path) + (search && `?${search}`);
    if (this.#unlock === null || (init.method ?? 'GET') === 'GET') {
      return this._send(url, init);
    }
    const headers = { ...init.headers, [UNLOCK_HEADER]: this.#unlock };
    return this._send(url, { ...init, headers });
  }

  private _url(path: readonly string[]): string {
    const names = path.map(encodeURIComponent);
    return URLExt.join(this._settings.baseUrl, API_NAMESPACE, ...names);
  }

  private async _send(url: string, init: RequestInit): Promise<Response> {
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

  private _asking: Promise<boolean> | null = null;
  private _clockOffset = 0;
  /** Out of reach of other scripts in the page, as far as that goes. */
  #unlock: string | null = null;
}
