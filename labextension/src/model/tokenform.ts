/** A token that a person is about to give to an agent. */
import type { IAgentExecApi } from '../api/client';
import { ApiError } from '../api/errors';
import type { IMintedToken } from '../wire';
import { Observable } from './observable';
import { complaintsOf, fieldOf, requestOf } from './tokendraft';
import type { Complaints, DraftField, ITokenDraft } from './tokendraft';

/**
 * Keeps what was written and what is wrong with it.
 *
 * A secret that the server tells is handed on and not kept.
 */
export class TokenForm extends Observable {
  /**
   * @param _api - The server.
   * @param _draft - What is written at first.
   */
  constructor(
    private readonly _api: Pick<IAgentExecApi, 'mintToken' | 'revokeToken'>,
    private _draft: ITokenDraft
  ) {
    super();
  }

  get draft(): ITokenDraft {
    return this._draft;
  }

  get complaints(): Complaints {
    return this._complaints;
  }

  /** Why it was refused, if that is about no field; null if it was not. */
  get failure(): unknown {
    return this._failure;
  }

  /** Whether the server has been asked and has not answered. */
  get isPending(): boolean {
    return this._isPending;
  }

  /** How often it was refused: what is wrong then is to be shown. */
  get refusals(): number {
    return this._refusals;
  }

  /** Write something; what was wrong with it counts no more. */
  set(given: Partial<ITokenDraft>, field: DraftField): void {
    this._draft = { ...this._draft, ...given };
    const left = new Map(this._complaints);
    left.delete(field);
    this._complaints = left;
    this.emitChanged();
  }

  /** Ask for the token; null if something is wrong, or it was given up. */
  async submit(): Promise<IMintedToken | null> {
    if (this._isPending) {
      return null;
    }
    const draft = this._draft;
    this._failure = null;
    this._complaints = complaintsOf(draft);
    if (this._complaints.size > 0) {
      this._refuse();
      return null;
    }
    this._isPending = true;
    this.emitChanged();
    try {
      const minted = await this._api.mintToken(requestOf(draft));
      if (this._isGivenUp) {
        // Nobody sees its secret any more, so it is no good to anybody.
        await this._api.revokeToken(minted.token.id);
        return null;
      }
      return minted;
    } catch (error) {
      this._take(error, draft);
      return null;
    } finally {
      this._isPending = false;
      this.emitChanged();
    }
  }

  /** Have no token minted, whatever is on its way. */
  giveUp(): void {
    this._isGivenUp = true;
  }

  private _take(error: unknown, draft: ITokenDraft): void {
    const named = error instanceof ApiError ? error.field : null;
    const field = fieldOf(named, draft);
    if (error instanceof ApiError && field) {
      // The field is in sight: its name in the server's words helps nobody.
      const text = error.message.replace(`${named}: `, '');
      this._complaints = new Map([[field, { kind: 'said', text }]]);
    } else {
      this._failure = error;
    }
    this._refuse();
  }

  private _refuse(): void {
    this._refusals++;
    this.emitChanged();
  }

  private _complaints: Complaints = new Map();
  private _failure: unknown = null;
  private _isGivenUp = false;
  private _isPending = false;
  private _refusals = 0;
}
