/** When a notebook is being saved. */
import { PromiseDelegate } from '@lumino/coreutils';

/** Milliseconds for which a save is waited for; a dialog may be in its way. */
const LONGEST = 2000;

/** Wait for a time, in milliseconds. */
export function after(delay: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, delay));
}

/** The saves of a notebook that are under way. */
export class Saves {
  begin(): void {
    this._count++;
    this._over ??= new PromiseDelegate();
  }

  end(): void {
    this._count = Math.max(0, this._count - 1);
    if (this._count === 0) {
      this.forget();
    }
  }

  /** Take all for ended. */
  forget(): void {
    this._count = 0;
    this._over?.resolve();
    this._over = null;
  }

  /** Whether one is under way, as far as is known: not all tell of their end. */
  get any(): boolean {
    return this._over !== null;
  }

  /** Wait until none is under way, and whoever waited for it has gone on. */
  async over(): Promise<void> {
    const until = performance.now() + LONGEST;
    while (this._over && performance.now() < until) {
      const left = after(until - performance.now());
      await Promise.race([this._over.promise, left]);
      await after(0);
    }
    this.forget(); // one that a person cancels never tells
  }

  private _count = 0;
  private _over: PromiseDelegate<void> | null = null;
}
