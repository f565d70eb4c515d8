/** The outputs of a code cell, as the server counts them. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import { applyOutputChange, joinText } from '../api/outputs';
import type { IOutputChange } from '../wire';

/** What is known of the cells that agents write to. */
const known = new WeakMap<ICodeCellModel, CellOutputs>();

/** A stream's name; null for any other output. */
function streamName(output: nbformat.IOutput | undefined): string | null {
  return output?.output_type === 'stream' ? String(output.name) : null;
}

/** The text that a stream has gained; null for any other change. */
function appended(
  before: nbformat.IOutput | undefined,
  after: nbformat.IOutput
): string | null {
  const name = streamName(after);
  const [shorter, longer] = [before, after].map(each => joinText(each?.text));
  return name !== null &&
    name === streamName(before) &&
    longer.startsWith(shorter)
    ? longer.slice(shorter.length)
    : null;
}

/**
 * Outputs as they were sent, and how to bring them into the cell's model.
 *
 * The model joins neighbouring streams of one name and works off carriage
 * returns, so neither its number of outputs nor their text tells where the
 * server is.
 */
export class CellOutputs {
  private constructor(private readonly _cell: ICodeCellModel) {
    this._list = this._cell.outputs.toJSON();
  }

  /** The outputs of a cell. */
  static of(cell: ICodeCellModel): CellOutputs {
    let outputs = known.get(cell);
    if (!outputs?._isInModel()) {
      outputs = new CellOutputs(cell);
      known.set(cell, outputs);
    }
    return outputs;
  }

  /** The outputs as the server knows them. */
  get list(): readonly nbformat.IOutput[] {
    return this._list;
  }

  /** Make changes that fit. */
  change(changes: readonly IOutputChange[]): void {
    let inStep = true;
    for (const change of changes) {
      inStep = inStep && this._changeModel(change);
      this._list = applyOutputChange(this._list, change) ?? this._list;
    }
    if (!inStep) {
      this.showAgain();
    }
  }

  /**
   * Make the changes that lead from one list to another.
   *
   * @param before - The list as it was followed to last, or as it was at first.
   * @param after - Outputs that did not change are the same objects.
   */
  follow(
    before: readonly nbformat.IOutput[],
    after: readonly nbformat.IOutput[]
  ): void {
    const changes: IOutputChange[] = [];
    if (after.length < before.length) {
      changes.push({ index: after.length, truncate: true });
    }
    after.forEach((output, index) => {
      if (output !== before[index]) {
        const append = appended(before[index], output);
        changes.push(append === null ? { index, output } : { index, append });
      }
    });
    this.change(changes);
  }

  /**
   * Set the model's outputs as a whole.
   *
   * A stream that is replaced in the model is not followed by its view.
   */
  showAgain(): void {
    const { outputs } = this._cell;
    outputs.clear();
    for (const output of this._list) {
      outputs.add(output);
    }
  }

  /** Bring one change into the model, if it can be done without the rest. */
  private _changeModel(change: IOutputChange): boolean {
    const { append, index, output, truncate } = change;
    const { outputs } = this._cell;
    if (truncate && index === this._list.length) {
      return true;
    }
    const before = this._list[index];
    const isLast = index === this._list.length - 1;
    if (append !== undefined && isLast) {
      outputs.add({ ...before, text: append });
      return true;
    }
    if (output && index === this._list.length) {
      outputs.add(output);
      return true;
    }
    if (output && streamName(before) === null && streamName(output) === null) {
      outputs.set(this._indexInModel(index), output);
      return true;
    }
    return false;
  }

  /** Where an output that is no stream stands in the model. */
  private _indexInModel(index: number): number {
    return this._joined(index).length;
  }

  /** The first outputs, without those that the model joins with the one before. */
  private _joined(count: number): nbformat.IOutput[] {
    return this._list
      .slice(0, count)
      .filter(
        (output, i, all) =>
          streamName(output) === null ||
          streamName(output) !== streamName(all[i - 1])
      );
  }

  /** Whether nobody else has changed the model's outputs. */
  private _isInModel(): boolean {
    const { outputs } = this._cell;
    const joined = this._joined(this._list.length);
    return (
      outputs.length === joined.length &&
      joined.every(
        (output, i) => outputs.get(i).type === String(output.output_type)
      )
    );
  }

  private _list: readonly nbformat.IOutput[];
}
