/** What models have in common: they say that something changed, and end. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { IDisposable } from '@lumino/disposable';

/** Whether there is something to show, and if not, why. */
export type LoadState =
  | { phase: 'loading' }
  | { phase: 'ready' }
  | { phase: 'error'; error: unknown };

/** Base of models. */
export abstract class Observable<T = void> implements IDisposable {
  /** Something changed. */
  get changed(): ISignal<this, T> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  /** Say that something changed, unless this is disposed. */
  protected emitChanged(change: T): void {
    if (!this._isDisposed) {
      this._changed.emit(change);
    }
  }

  private _isDisposed = false;
  private _changed = new Signal<this, T>(this);
}
