/** One execution, as it is known here. */
import type * as nbformat from '@jupyterlab/nbformat';
import { JSONExt } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { applyOutputChange } from '../api/outputs';
import { isFinal } from '../tokens';
import type {
  IExecution,
  IExecutionModel,
  IOutputChange,
  IStatusChange
} from '../tokens';

/** Holds an execution and takes what the server tells about it. */
export class ExecutionModel implements IExecutionModel {
  /**
   * @param execution - What is known of it now.
   * @param _finished - Called once, when it gets a final status.
   */
  constructor(
    execution: IExecution,
    private readonly _finished: (execution: IExecution) => void = () =>
      undefined
  ) {
    this._execution = execution;
    this._outputs = execution.cell.outputs;
  }

  get execution(): IExecution {
    return this._execution;
  }

  get outputs(): readonly nbformat.IOutput[] {
    return this._outputs;
  }

  get changed(): ISignal<this, 'status' | 'outputs'> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  /** Replace all but the outputs. */
  setStatus(execution: IExecution): void {
    const pending = !isFinal(this._execution.status);
    this._execution = execution;
    this._changed.emit('status');
    if (pending && isFinal(execution.status)) {
      this._finished(execution);
    }
  }

  /** Replace everything; outputs that are equal stay the same objects. */
  set(execution: IExecution): void {
    const known = this._outputs;
    const outputs = execution.cell.outputs.map((output, index) =>
      index < known.length && JSONExt.deepEqual(output, known[index])
        ? known[index]
        : output
    );
    const same =
      outputs.length === known.length &&
      outputs.every((output, index) => output === known[index]);
    this.setStatus(execution);
    if (!same) {
      this._outputs = outputs;
      this._changed.emit('outputs');
    }
  }

  /** Take a new status from the stream. */
  applyStatus(change: IStatusChange): void {
    const { status, execution_count, started_at, waiting_for } = change;
    this.setStatus({
      ...this._execution,
      status,
      waiting_for: waiting_for ?? null,
      execution_count: execution_count ?? this._execution.execution_count,
      started_at: started_at ?? this._execution.started_at
    });
  }

  /** Take a step of the outputs; false if it does not fit what is known. */
  applyOutput(change: IOutputChange): boolean {
    const outputs = applyOutputChange(this._outputs, change);
    if (!outputs) {
      return false;
    }
    this._outputs = outputs;
    this._changed.emit('outputs');
    return true;
  }

  private _execution: IExecution;
  private _outputs: readonly nbformat.IOutput[];
  private _isDisposed = false;
  private _changed = new Signal<this, 'status' | 'outputs'>(this);
}
