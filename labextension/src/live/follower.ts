/** The stream of the execution that runs. */
import type { IDisposable } from '@lumino/disposable';
import type { ExecutionModel } from './execution';
import { isFinal, isRunning } from '../wire';
import type { IAgentExecApi } from '../api/client';
import type { StreamEvent } from '../wire';

/**
 * Follows one execution at a time, and its model takes what the stream tells.
 *
 * While it follows an execution, the stream alone knows its outputs: an answer
 * read elsewhere may be older or newer than the step that comes next.
 */
export class Follower implements IDisposable {
  /**
   * @param _api - Where the stream comes from.
   * @param _ended - Called when a stream ends, for whatever reason but `stop`.
   */
  constructor(
    private readonly _api: IAgentExecApi,
    private readonly _ended: (model: ExecutionModel) => void
  ) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The execution that is followed. */
  get current(): ExecutionModel | null {
    return this._current;
  }

  dispose(): void {
    this._isDisposed = true;
    this.stop();
  }

  /** Follow the first that runs and can be followed, if any. */
  choose(models: readonly ExecutionModel[]): void {
    if (this._current && models.includes(this._current)) {
      return;
    }
    this.stop();
    const next = models.find(
      model =>
        isRunning(model.execution.status) &&
        !this._givenUp.has(model.execution.id)
    );
    if (next && !this._isDisposed) {
      this._abort = new AbortController();
      this._current = next;
      void this._follow(next, this._abort);
    }
  }

  /** Try again what was given up: the server was away. */
  retry(): void {
    this._givenUp.clear();
  }

  /** Follow nothing. */
  stop(): void {
    this._abort?.abort();
    this._abort = null;
    this._current = null;
  }

  private async _follow(
    model: ExecutionModel,
    abort: AbortController
  ): Promise<void> {
    const { signal } = abort;
    const { id } = model.execution;
    try {
      for await (const event of this._api.follow(id, signal)) {
        if (signal.aborted) {
          return;
        }
        if (!this._take(model, event)) {
          this._givenUp.add(id);
          break;
        }
      }
    } catch {
      // The cell is still read when it changes status, only not as it grows.
      this._givenUp.add(id);
    }
    if (!signal.aborted) {
      if (!isFinal(model.execution.status)) {
        this._givenUp.add(id);
      }
      this.stop();
      this._ended(model);
    }
  }

  private _take(model: ExecutionModel, event: StreamEvent): boolean {
    switch (event.kind) {
      case 'execution':
        model.set(event.execution);
        return true;
      case 'status':
        model.applyStatus(event.change);
        return true;
      case 'output':
        return model.applyOutput(event.change);
    }
  }

  private _isDisposed = false;
  private _current: ExecutionModel | null = null;
  private _abort: AbortController | null = null;
  private readonly _givenUp = new Set<string>();
}
