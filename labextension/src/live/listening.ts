/** What is read from the server, and again when its events tell to. */
import { ActivityListener } from '../api/events';
import type { Events } from '../api/events';
import type { IActivityEvent } from '../wire';
import { Coalescer } from './coalescer';
import { Observable } from './observable';

/** Milliseconds after which what goes on is read again: an event may be lost. */
export const RECHECK_INTERVAL = 5000;

/** Base of models that listen to the server's events and read seldom. */
export abstract class Listening extends Observable {
  /**
   * @param events - The server's.
   * @param rest - Milliseconds between two looks at the server while much
   *   happens.
   */
  constructor(events: Events, rest: number) {
    super();
    this._reading = new Coalescer(() => this.read(), rest);
    this._listener = new ActivityListener(events, (event, complete) =>
      this.onEvent(event, complete)
    );
  }

  override dispose(): void {
    this._listener.dispose();
    this._reading.dispose();
    this.recheck(false);
    super.dispose();
  }

  /** Ask for a look at the server. */
  protected request(): void {
    this._reading.request();
  }

  /**
   * Read again, and again after a while.
   *
   * @param goesOn - Whether something is shown that is expected to end.
   * @param look - Reads all of it.
   */
  protected recheck(goesOn: boolean, look?: () => unknown): void {
    clearTimeout(this._recheck);
    if (goesOn && !this.isDisposed) {
      this._recheck = setTimeout(() => {
        this.recheck(true, look);
        if (!document.hidden) {
          look?.();
        }
      }, RECHECK_INTERVAL);
    }
  }

  /** Look at the server; must not reject. */
  protected abstract read(): Promise<void>;

  /**
   * Take what the server tells.
   *
   * @param complete - Whether nothing was missed since the event before.
   */
  protected abstract onEvent(event: IActivityEvent, complete: boolean): void;

  private _recheck: ReturnType<typeof setTimeout> | undefined;
  private readonly _listener: ActivityListener;
  private readonly _reading: Coalescer;
}
