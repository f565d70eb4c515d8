/** What is read from the server, and again when its events tell to. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { IDisposable } from '@lumino/disposable';
import { ActivityListener } from '../api/events';
import type { Events } from '../api/events';
import type { IActivityEvent } from '../tokens';
import { Coalescer } from './coalescer';

/** Base of models that listen to the server's events and read seldom. */
export abstract class Listening implements IDisposable {
  /**
   * @param events - The server's.
   * @param rest - Milliseconds between two looks at the server while much
   *   happens.
   */
  constructor(events: Events, rest: number) {
    this._reading = new Coalescer(() => this.read(), rest);
    this._listener = new ActivityListener(events, (event, complete) =>
      this.onEvent(event, complete)
    );
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._reading.isDisposed;
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._listener.dispose();
      this._reading.dispose();
      Signal.clearData(this);
    }
  }

  /** Ask for a look at the server. */
  protected request(): void {
    this._reading.request();
  }

  /** Say that something changed. */
  protected tell(): void {
    this._changed.emit();
  }

  /** Look at the server; must not reject. */
  protected abstract read(): Promise<void>;

  /**
   * Take what the server tells.
   *
   * @param complete - Whether nothing was missed since the event before.
   */
  protected abstract onEvent(event: IActivityEvent, complete: boolean): void;

  private readonly _listener: ActivityListener;
  private readonly _reading: Coalescer;
  private _changed = new Signal<this, void>(this);
}
