/** Work that is asked for often and done seldom. */
import { PromiseDelegate } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';

/**
 * Runs a task at once, and again after a rest if it was asked for meanwhile.
 *
 * However often it is asked for, one run at a time is under way, and the last
 * request is always followed by a run that started after it.
 */
export class Coalescer implements IDisposable {
  /**
   * @param _task - What to do.
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
    clearTimeout(this._timer);
    this._requested?.resolve();
  }

  /**
   * Ask for a run, and wait for its end; it rejects as the task does.
   *
   * @param isUrgent - Whether not to rest before.
   */
  request(isUrgent = false): Promise<void> {
    if (this._isDisposed) {
      return Promise.resolve();
    }
    this._requested ??= new PromiseDelegate<void>();
    this._isUrgent ||= isUrgent;
    const { promise } = this._requested;
    if (!this._isRunning && (!this._isResting || isUrgent)) {
      void this._run();
    }
    return promise;
  }

  private async _run(): Promise<void> {
    const requested = this._requested;
    clearTimeout(this._timer);
    this._requested = null;
    this._isRunning = true;
    this._isUrgent = false;
    try {
      await this._task();
      requested?.resolve();
    } catch (error) {
      requested?.reject(error);
    }
    this._isRunning = false;
    if (this._isDisposed) {
      return;
    }
    this._isResting = true;
    this._timer = setTimeout(
      () => {
        this._isResting = false;
        if (this._requested) {
          void this._run();
        }
      },
      this._isUrgent ? 0 : this._rest
    );
  }

  private _isDisposed = false;
  private _isResting = false;
  private _isRunning = false;
  /** Whether the next run is to come without a rest. */
  private _isUrgent = false;
  /** Done when the run that was asked for is; null if none was. */
  private _requested: PromiseDelegate<void> | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
