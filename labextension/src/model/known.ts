/** Which executions of a session are known, and which should be. */
import type { IDisposable } from '@lumino/disposable';
import { ExecutionModel } from './execution';
import { isFinal } from '../wire';
import type { IExecution } from '../wire';

/** Cells fetched at once. */
export const PAGE = 20;

/** Cells on either side of those looked at that are fetched too. */
export const AHEAD = 20;

/** Cells on either side of those looked at that are kept. */
export const KEPT = 100;

/** A range of numbers, both ends included. */
export interface IRange {
  first: number;
  last: number;
}

/**
 * Executions by their number.
 *
 * Known are those near what is looked at, those that are held, and all that
 * still run; how many there are otherwise does not matter.
 */
export class KnownExecutions implements IDisposable {
  /** @param _finished - Called when one that was pending has finished. */
  constructor(private readonly _finished: (execution: IExecution) => void) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._models.forEach(model => model.dispose());
  }

  /** The number of the last; 0 before any is known. */
  get last(): number {
    return this._last;
  }

  /** In order. */
  get models(): readonly ExecutionModel[] {
    this._sorted ??= Array.from(this._models.values()).sort(
      (a, b) => a.execution.seq - b.execution.seq
    );
    return this._sorted;
  }

  /** What is looked at; null before anybody told. */
  get view(): IRange | null {
    return this._view;
  }

  at(seq: number): ExecutionModel | null {
    return this._models.get(seq) ?? null;
  }

  find(id: string): ExecutionModel | null {
    return this.models.find(({ execution }) => execution.id === id) ?? null;
  }

  /** Whether the server has none with this number. */
  isAbsent(seq: number): boolean {
    return this._absent.has(seq);
  }

  /**
   * Say what is looked at.
   *
   * @param view - What can be seen.
   * @param held - Numbers of others that must not be forgotten.
   */
  look(view: IRange, held: readonly number[]): void {
    this._view = view;
    this._held = held;
    this._forgetFar();
  }

  /** Keep one though nobody looks at it yet; null keeps none so. */
  seek(seq: number | null): void {
    this._sought = seq;
  }

  /** What is looked at, or about to be, and not known: one page of it. */
  missing(): IRange | null {
    if (!this._view) {
      return null;
    }
    const { first, last } = this._view;
    return (
      this._unknownIn(first, last, 1) ??
      this._unknownIn(last + 1, last + AHEAD, PAGE / 2) ??
      this._unknownIn(first - AHEAD, first - 1, PAGE / 2)
    );
  }

  /**
   * Take executions as the server lists them, and make models of those that
   * are to be known.
   *
   * @param after - The number after which the list begins.
   * @param until - The number up to which it is complete, if that is more
   * than its own last one.
   * @param followed - The one whose outputs only its stream knows.
   */
  take(
    executions: readonly IExecution[],
    after: number,
    until = 0,
    followed: ExecutionModel | null = null
  ): void {
    const seen = new Set(executions.map(({ seq }) => seq));
    const end = Math.max(until, ...seen);
    for (let seq = after + 1; seq <= end; seq++) {
      if (!seen.has(seq)) {
        this._absent.add(seq);
      }
    }
    this._last = Math.max(this._last, ...seen);
    for (const execution of executions) {
      this._absent.delete(execution.seq);
      const model = this._models.get(execution.seq);
      if (model) {
        update(model, execution, model === followed);
      } else if (this._isWanted(execution)) {
        this._models.set(
          execution.seq,
          new ExecutionModel(execution, this._finished)
        );
        this._sorted = null;
      }
    }
    this._forgetFar();
  }

  /** Forget those that are not looked at and run no more. */
  forgetOutside({ first, last }: IRange): void {
    for (const [seq, model] of this._models) {
      const inside = seq >= first && seq <= last;
      if (!inside && !this._isHeld(model.execution)) {
        this._models.delete(seq);
        this._sorted = null;
        model.dispose();
      }
    }
  }

  private _forgetFar(): void {
    if (this._view) {
      const { first, last } = this._view;
      this.forgetOutside({ first: first - KEPT, last: last + KEPT });
    }
  }

  private _isWanted(execution: IExecution): boolean {
    if (!this._view || this._isHeld(execution)) {
      return true;
    }
    const { first, last } = this._view;
    return execution.seq >= first - KEPT && execution.seq <= last + KEPT;
  }

  private _isHeld({ seq, status }: IExecution): boolean {
    return !isFinal(status) || seq === this._sought || this._held.includes(seq);
  }

  /** From the first to the last unknown one, if there are so many. */
  private _unknownIn(from: number, to: number, least: number): IRange | null {
    const end = Math.min(to, this._last);
    const unknown: number[] = [];
    for (let seq = Math.max(from, 1); seq <= end; seq++) {
      if (!this._models.has(seq) && !this._absent.has(seq)) {
        unknown.push(seq);
      }
    }
    const few = Math.min(least, end - Math.max(from, 1) + 1);
    if (unknown.length === 0 || unknown.length < few) {
      return null;
    }
    const first = unknown[0];
    return {
      first,
      last: Math.min(unknown[unknown.length - 1], first + PAGE - 1)
    };
  }

  private readonly _models = new Map<number, ExecutionModel>();
  private readonly _absent = new Set<number>();
  private _held: readonly number[] = [];
  private _isDisposed = false;
  private _last = 0;
  private _sorted: ExecutionModel[] | null = null;
  private _sought: number | null = null;
  private _view: IRange | null = null;
}

/** Bring a model up to date with an answer that may be older than it. */
function update(
  model: ExecutionModel,
  execution: IExecution,
  isFollowed: boolean
): void {
  const isOlder = isFinal(model.execution.status);
  if (isFollowed && !isOlder) {
    model.setStatus(execution);
  } else if (!isOlder || isFinal(execution.status)) {
    model.set(execution);
  }
}
