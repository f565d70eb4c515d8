/** One timer for all that shows how much time has passed. */
import type { IDisposable } from '@lumino/disposable';

/** Milliseconds between two ticks. */
const TICK = 1000;

/** Something that is told when time has passed. */
export interface ITicking {
  tick(): void;
}

/** Ticks while there is something to tell it. */
export class Clock implements IDisposable {
  /** @param now - The server's time, in milliseconds. */
  constructor(readonly now: () => number) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._ticking.clear();
    this._keep();
  }

  /** Tell something of each tick, or no more. */
  set(ticking: ITicking, needed: boolean): void {
    if (needed && !this._isDisposed) {
      this._ticking.add(ticking);
    } else {
      this._ticking.delete(ticking);
    }
    this._keep();
  }

  private _keep(): void {
    const needed = this._ticking.size > 0;
    if (needed && this._timer === null) {
      this._timer = window.setInterval(() => {
        this._ticking.forEach(each => each.tick());
      }, TICK);
    } else if (!needed && this._timer !== null) {
      window.clearInterval(this._timer);
      this._timer = null;
    }
  }

  private _isDisposed = false;
  private readonly _ticking = new Set<ITicking>();
  private _timer: number | null = null;
}
