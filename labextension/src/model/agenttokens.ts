/** The agent tokens that there are. */
import type { IAgentExecApi } from '../api/client';
import type { Events } from '../api/events';
import type { IAgentToken } from '../wire';
import { Listening } from './listening';
import type { LoadState } from './observable';

/** Milliseconds between two looks at the server while much happens. */
const REST = 1000;

/**
 * Keeps a list of agent tokens in step with the server while it is looked at.
 *
 * Any event makes it look: a token was minted or revoked, or an agent did
 * something, which may have been with a token.
 */
export class AgentTokens extends Listening {
  /**
   * @param _api - The server.
   * @param events - Its events.
   */
  constructor(
    private readonly _api: IAgentExecApi,
    events: Events
  ) {
    super(events, REST);
  }

  /** The newest first. */
  get tokens(): readonly IAgentToken[] {
    return this._tokens;
  }

  get state(): LoadState {
    return this._state;
  }

  /** The server's time, in milliseconds. */
  now(): number {
    return Date.now() + this._api.clockOffset;
  }

  /** Take a token back. */
  async revoke(id: string): Promise<void> {
    const revoked = await this._api.revokeToken(id);
    this._set(this._tokens.map(each => (each.id === id ? revoked : each)));
    // What was on its way may say that it is still valid.
    this.refresh();
  }

  /** Ask for a look at the server. */
  refresh(): void {
    this.request();
  }

  protected onEvent(): void {
    this.refresh();
  }

  protected async read(): Promise<void> {
    try {
      const { tokens } = await this._api.listTokens();
      this._state = { phase: 'ready' };
      this._set(tokens);
    } catch (error) {
      this._state = { phase: 'error', error };
      this._set(this._tokens);
    }
  }

  private _set(tokens: readonly IAgentToken[]): void {
    if (!this.isDisposed) {
      this._tokens = tokens;
      this.emitChanged();
    }
  }

  private _state: LoadState = { phase: 'loading' };
  private _tokens: readonly IAgentToken[] = [];
}

/** How a token stands; no event tells that one has expired. */
export function standing(
  { expires_at, status }: IAgentToken,
  now: number
): IAgentToken['status'] {
  const isOver = status === 'active' && Date.parse(expires_at) <= now;
  return isOver ? 'expired' : status;
}
