/** What agents propose to change in one notebook. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { ApiError } from '../api/errors';
import type { IDecisionDetails, ILiveModel } from '../tokens';
import type {
  EditDecision,
  IActivityEvent,
  IAgent,
  IProposal,
  IProposalList,
  IProposedEdit
} from '../wire';
import { Coalescer } from '../live/coalescer';
import { Observable } from '../live/observable';

/** Milliseconds between two looks at the server while much happens. */
const READ_INTERVAL_MS = 250;

/** An open edit, and who proposes it why. */
export interface IEditOfRound extends IProposedEdit {
  agent: IAgent;
  purpose: string | null;
}

/** All that one agent session proposes for a notebook. */
export interface IRound {
  sessionId: string;
  agent: IAgent;
  edits: readonly IEditOfRound[];
}

/** What became of edits of an agent session. */
interface IDecided {
  what: EditDecision;
  sessionId: string;
  edits: readonly IProposedEdit[];
}

/** Keeps the open edits of a notebook in step with the server. */
export class NotebookProposals extends Observable {
  /**
   * @param _live - The server's events.
   * @param _path - The notebook's current path.
   */
  constructor(
    private readonly _live: ILiveModel,
    private readonly _path: () => string
  ) {
    super();
    _live.heard.connect(this._onHeard, this);
    _live.missed.connect(this.refresh, this);
  }

  override dispose(): void {
    this._reading.dispose();
    super.dispose();
  }

  get rounds(): readonly IRound[] {
    return this._rounds;
  }

  /** Ask for a look at the server. */
  refresh(): void {
    // What becomes of a decision is told first, and read then.
    if (this._deciding === 0) {
      void this._reading.request();
    }
  }

  /** What became of edits that a user decided about in this page, or becomes later. */
  get decided(): ISignal<this, IDecided> {
    return this._decided;
  }

  /** Decide about edits of a session, or take such decisions back. */
  async decide(
    what: EditDecision,
    sessionId: string,
    ids: readonly string[],
    more: IDecisionDetails = {}
  ): Promise<void> {
    this._deciding++;
    try {
      const { api } = this._live;
      const told = await api.decideEdits(what, sessionId, ids, more);
      const edits = chosen(told, ids);
      this._followed.set(sessionId, what === 'undo' ? [] : edits);
      this._decided.emit({ what, sessionId, edits });
    } finally {
      this._deciding--;
      void this._reading.request();
    }
  }

  /** Follow no longer what becomes of a session's decided edits. */
  forget(sessionId: string): void {
    this._followed.delete(sessionId);
  }

  private _onHeard(_: unknown, { action }: IActivityEvent): void {
    if (action === 'proposals' || action === 'notebook') {
      this.refresh();
    }
  }

  private async _read(): Promise<void> {
    try {
      const { api } = this._live;
      const { proposals } = await api.listProposals(this._path());
      this._rounds = rounds(proposals);
      this.emitChanged();
      for (const [sessionId, edits] of this._followed) {
        await this._follow(sessionId, edits);
      }
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      // What is shown stays; the next event tries again.
    }
  }

  /** Tell what became of decided edits, if it is something else now. */
  private async _follow(
    sessionId: string,
    told: readonly IProposedEdit[]
  ): Promise<void> {
    const decided = told.filter(({ status }) => status !== 'open');
    if (decided.length === 0) {
      return;
    }
    const list = await this._live.api.listProposals(null, sessionId);
    const now = chosen(
      list,
      decided.map(({ id }) => id)
    );
    const isSame = (each: IProposedEdit) =>
      decided.some(
        ({ id, status }) => id === each.id && status === each.status
      );
    if (this._followed.get(sessionId) !== told || now.every(isSame)) {
      return;
    }
    // What is proposed again is shown as such.
    const edits = now.filter(({ status }) => status !== 'open');
    this._followed.set(sessionId, edits);
    this._decided.emit({ what: 'keep', sessionId, edits });
  }

  private readonly _decided = new Signal<this, IDecided>(this);
  private _deciding = 0;
  /** What was told of, by session: an undo of all its changes takes it back too. */
  private readonly _followed = new Map<string, readonly IProposedEdit[]>();
  private readonly _reading = new Coalescer(
    () => this._read(),
    READ_INTERVAL_MS
  );
  private _rounds: readonly IRound[] = [];
}

/** The edits with some ids. */
function chosen(
  { proposals }: IProposalList,
  ids: readonly string[]
): IProposedEdit[] {
  const edits = proposals.flatMap(proposal => proposal.edits);
  return edits.filter(({ id }) => ids.includes(id));
}

/** Put the proposals of each session together. */
function rounds(proposals: readonly IProposal[]): IRound[] {
  const found = new Map<string, IRound>();
  for (const { agent, edits, purpose, session_id: sessionId } of proposals) {
    const known = found.get(sessionId)?.edits ?? [];
    const added = edits.map(edit => ({ ...edit, agent, purpose }));
    found.set(sessionId, { sessionId, agent, edits: [...known, ...added] });
  }
  return Array.from(found.values());
}
