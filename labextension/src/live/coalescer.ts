/** Work that is asked for often and done seldom. */
import type { IDisposable } from '@lumino/disposable';

/**
 * Runs a task at once, and again after a rest if it was asked for meanwhile.
 *
 * However often it is asked for, one run at a time is under way, and the last
 * request is always followed by a run that started after it.
 */
export class Coalescer implements IDisposable {
  /**
   * @param _task - What to do. It must not reject.
   * @param _rest - Milliseconds between the end of a run and the next.
   */
  constructor(
    private readonly _task: () => Promise<void>,
    private readonly _rest: number
  ) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    if (this._timer !== null) {
      clearTimeout(this._timer);
      this._timer = null;
    }
  }

  /** Ask for a run. */
  request(): void {
    if (this._isDisposed) {
      return;
    }
    this._requested = true;
    if (!this._running && this._timer === null) {
      void this._run();
    }
  }

  private async _run(): Promise<void> {
    this._requested = false;
    this._running = true;
    await this._task();
    this._running = false;
    if (this._isDisposed) {
      return;
    }
    this._timer = setTimeout(() => {
      this._timer = null;
      if (this._requested) {
        void this._run();
      }
    }, this._rest);
  }

  private _isDisposed = false;
  private _requested = false;
  private _running = false;
  private _timer: ReturnType<typeof setTimeout> | null = null;
}
