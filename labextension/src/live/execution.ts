/** One execution, as it is known here. */
import type * as nbformat from '@jupyterlab/nbformat';
import { JSONExt } from '@lumino/coreutils';
import type { IAgentExecApi } from '../api/client';
import { applyOutputChange } from '../api/outputs';
import { isFinal } from '../wire';
import type { IExecution, IOutputChange, IStatusChange } from '../wire';
import { Observable } from './observable';

/** Holds an execution and takes what the server tells about it. */
export class ExecutionModel extends Observable<'status' | 'outputs'> {
  /**
   * @param execution - What is known of it now.
   * @param _finished - Called once, when it gets a final status.
   */
  constructor(
    execution: IExecution,
    private readonly _finished: (execution: IExecution) => void = () =>
      undefined
  ) {
    super();
    this._execution = execution;
    this._outputs = execution.cell.outputs;
  }

  get execution(): IExecution {
    return this._execution;
  }

  get outputs(): readonly nbformat.IOutput[] {
    return this._whole ?? this._outputs;
  }

  /** Which of the outputs that were left out are there in whole. */
  get opened(): ReadonlySet<number> {
    return this._opened;
  }

  /** Fetch an output that was left out. */
  async openOutput(index: number, api: IAgentExecApi): Promise<void> {
    if (!this._whole) {
      const { cell } = await api.getExecution(this._execution.id);
      const { left_out } = this._execution;
      if (this.isDisposed || !left_out.some(each => each.index === index)) {
        return;
      }
      this._whole = cell.outputs;
    }
    this._opened = new Set(this._opened).add(index);
    this.emitChanged('outputs');
  }

  /** Read it again, as whole as it is here now. */
  async refresh(api: IAgentExecApi): Promise<void> {
    const { id, left_out, seq, session_id } = this._execution;
    if (left_out.length === 0) {
      this._setUnlessDisposed(await api.getExecution(id));
      return;
    }
    const range = { after: seq - 1, limit: 1, brief: true };
    const list = await api.listExecutions(session_id, range);
    list.executions
      .filter(each => each.id === id)
      .forEach(each => this._setUnlessDisposed(each));
  }

  /** Replace all but the outputs. */
  setStatus(execution: IExecution): void {
    this._take({ ...execution, left_out: this._execution.left_out });
  }

  /** Replace everything; outputs that are equal stay the same objects. */
  set(execution: IExecution): void {
    if (this._isInBrief(execution)) {
      this.setStatus(execution); // a log that was watched stays open
      return;
    }
    const known = this._outputs;
    const leftOut = this._execution.left_out;
    const outputs = execution.cell.outputs.map((output, index) =>
      index < known.length && JSONExt.deepEqual(output, known[index])
        ? known[index]
        : output
    );
    const same =
      outputs.length === known.length &&
      outputs.every((output, index) => output === known[index]);
    const stays =
      same && JSON.stringify(leftOut) === JSON.stringify(execution.left_out);
    if (!stays) {
      // What was fetched may be of another time.
      this._close();
    }
    this._outputs = outputs;
    this._take(execution);
    if (!stays) {
      this.emitChanged('outputs');
    }
  }

  /** Take a new status from the stream. */
  applyStatus(change: IStatusChange): void {
    const { status, execution_count, input, started_at, waiting_for } = change;
    this.setStatus({
      ...this._execution,
      status,
      waiting_for: waiting_for ?? null,
      input: input ?? null,
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
    this._close();
    this._outputs = outputs;
    this.emitChanged('outputs');
    return true;
  }

  /** Whether an answer leaves out what is here in whole since it ended. */
  private _isInBrief({ cell: { outputs }, left_out }: IExecution): boolean {
    const leftOut = new Set(left_out.map(({ index }) => index));
    return (
      leftOut.size > 0 &&
      this._execution.left_out.length === 0 &&
      isFinal(this._execution.status) &&
      outputs.length === this._outputs.length &&
      outputs.every(
        (output, index) =>
          leftOut.has(index) || JSONExt.deepEqual(output, this._outputs[index])
      )
    );
  }

  private _take(execution: IExecution): void {
    const pending = !isFinal(this._execution.status);
    this._execution = execution;
    this.emitChanged('status');
    if (pending && isFinal(execution.status)) {
      this._finished(execution);
    }
  }

  private _close(): void {
    this._whole = null;
    this._opened = new Set();
  }

  private _setUnlessDisposed(execution: IExecution): void {
    if (!this.isDisposed) {
      this.set(execution);
    }
  }

  private _execution: IExecution;
  private _outputs: readonly nbformat.IOutput[];
  private _opened: ReadonlySet<number> = new Set();
  /** The outputs with what was left out of `_outputs`, if it was fetched. */
  private _whole: readonly nbformat.IOutput[] | null = null;
}
