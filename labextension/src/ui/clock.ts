/** One timer for all that shows how much time has passed. */

/** Milliseconds between two ticks. */
const TICK = 1000;

/** Something that is told when time has passed. */
interface ITicking {
  tick(): void;
}

/** Ticks while there is something to tell it. */
export class Clock {
  /** @param now - The server's time, in milliseconds. */
  constructor(readonly now: () => number) {}

  /** Tell something of each tick, or no more. */
  set(ticking: ITicking, needed: boolean): void {
    if (needed) {
      this._ticking.add(ticking);
    } else {
      this._ticking.delete(ticking);
    }
    if (this._ticking.size === 0) {
      clearInterval(this._timer);
      this._timer = undefined;
    } else {
      this._timer ??= setInterval(() => {
        this._ticking.forEach(each => each.tick());
      }, TICK);
    }
  }

  private readonly _ticking = new Set<ITicking>();
  private _timer: ReturnType<typeof setInterval> | undefined;
}
