/** The stream of the execution that runs. */
import type { IDisposable } from '@lumino/disposable';
import type { ExecutionModel } from './execution';
import { isFinal, isRunning } from '../wire';
import type { IAgentExecApi } from '../api/client';
import type { IExecution, IOutputChange, IStatusChange } from '../wire';

/** Connections in a row that may break before a stream is given up. */
const MAX_BREAKS = 5;

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
    private readonly _api: Pick<IAgentExecApi, 'follow'>,
    private readonly _ended: () => void
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
      ({ execution: { id, status } }) =>
        isRunning(status) && !this._givenUp.has(id)
    );
    if (next && !this._isDisposed) {
      this._current = next;
      this._follow(next);
    }
  }

  /** Try again what was given up: the server was away. */
  retry(): void {
    this._givenUp.clear();
  }

  /** Follow nothing. */
  stop(): void {
    this._stream?.close();
    this._stream = null;
    this._current = null;
  }

  private _follow(model: ExecutionModel): void {
    const stream = this._api.follow(model.execution.id);
    this._stream = stream;
    let breaks = 0;
    const on = <T>(kind: string, take: (told: T) => void) =>
      stream.addEventListener(kind, ({ data }: MessageEvent<string>) => {
        breaks = 0;
        take(JSON.parse(data) as T);
      });
    on<IExecution>('accepted', told => model.set(told));
    on<IStatusChange>('status', told => model.applyStatus(told));
    on<IOutputChange>('output', told => {
      if (!model.applyOutput(told)) {
        this._end(model);
      }
    });
    on<IExecution>('finished', told => {
      model.set(told);
      this._end(model);
    });
    // The browser connects again, after the last event, unless it was refused.
    stream.onerror = () => {
      if (++breaks >= MAX_BREAKS || stream.readyState === CLOSED) {
        this._end(model);
      }
    };
  }

  /** What has not finished is still read when its status changes. */
  private _end({ execution: { id, status } }: ExecutionModel): void {
    if (!isFinal(status)) {
      this._givenUp.add(id);
    }
    this.stop();
    this._ended();
  }

  private _isDisposed = false;
  private _current: ExecutionModel | null = null;
  private readonly _givenUp = new Set<string>();
  private _stream: EventSource | null = null;
}

/** The state of a stream that does not connect again; a test has no browser's. */
const CLOSED = 2;
