/** The times that a session's code ran again, and how one of them compares. */
import type { IAgentExecApi } from '../api/client';
import type { IAgentSession, IRerun } from '../wire';
import { Observable } from '../live/observable';
import type { LoadState } from '../live/observable';

/** Runs a session's code again, and follows how its cells compare. */
export class RerunModel extends Observable {
  /**
   * @param _id - A session, or one in which another ran again.
   * @param _api - The server.
   */
  constructor(
    private readonly _id: string,
    private readonly _api: IAgentExecApi
  ) {
    super();
    this.show();
  }

  /** What is shown; null if it never ran again. */
  rerun: IRerun | null = null;

  /** The sessions in which it ran again, the newest first. */
  sessions: readonly IAgentSession[] = [];

  state: LoadState = { phase: 'loading' };

  /** Try again what failed. */
  retry: () => void = () => this.show();

  override dispose(): void {
    this._abort.abort();
    super.dispose();
  }

  /** Show a result; by default the newest. */
  show(id?: string): void {
    void this._follow(
      () => this.show(id),
      () => this._read(id)
    );
  }

  /** Run the code again. */
  run(isolated: boolean): void {
    const of = this.rerun?.of ?? this._id;
    void this._follow(
      () => this.run(isolated),
      async () => {
        const { session_id } = await this._api.runAgain(of, isolated);
        // What fails from here on does not run it once more.
        this.retry = () => this.show(session_id);
        return this._read(session_id);
      }
    );
  }

  private async _read(id?: string): Promise<IRerun | null> {
    const filter = { rerun_of: this._id };
    const { sessions } = await this._api.listSessions(null, 50, filter);
    this.sessions = sessions;
    const own = sessions.find(each => each.id === this._id);
    const shown = id ?? (own ?? sessions[0])?.id;
    return shown === undefined ? null : this._api.getRerun(shown);
  }

  /** Do something, and follow what it gives to its end. */
  private async _follow(
    retry: () => void,
    act: () => Promise<IRerun | null>
  ): Promise<void> {
    this._abort.abort();
    const { signal } = (this._abort = new AbortController());
    this.retry = retry;
    this._setState({ phase: 'loading' });
    try {
      let rerun = await act();
      while (!signal.aborted) {
        this.rerun = rerun;
        this._setState({ phase: 'ready' });
        if (rerun?.status !== 'running') {
          return;
        }
        const { cells, session_id } = rerun;
        rerun = await this._api.getRerun(session_id, cells.length, signal);
      }
    } catch (error) {
      if (!signal.aborted) {
        this._setState({ phase: 'error', error });
      }
    }
  }

  private _setState(state: LoadState): void {
    this.state = state;
    this.emitChanged();
  }

  private _abort = new AbortController();
}
