/** Where rows stand of which few have been measured. */

/** Pixels of a row before any has been measured. */
const FIRST_GUESS = 120;

/** In the place of a height that was not measured. */
const UNKNOWN = -1;

/** The heights of rows, counted from 1; what was not measured is estimated. */
export class Heights {
  /** How many rows there are. */
  get count(): number {
    return this._count;
  }
  set count(value: number) {
    if (value >= this._measured.length) {
      const grown = new Float64Array(2 * value + 1).fill(UNKNOWN);
      grown.set(this._measured);
      this._measured = grown;
    }
    this._count = value;
  }

  /** What a row is taken for that was not measured. */
  get estimate(): number {
    return this._estimate ?? FIRST_GUESS;
  }

  /** Pixels of all rows. */
  get total(): number {
    return this.between(1, this._count + 1);
  }

  /** A row's height. */
  of(row: number): number {
    const height = this._measured[row];
    return height === UNKNOWN ? this.estimate : height;
  }

  /** Take what was measured. */
  measure(row: number, height: number): void {
    this._measured[row] = height;
  }

  /**
   * From now on, take the others for the mean of those measured.
   *
   * It is done once: an estimate that changes moves what nobody has touched.
   */
  settle(): void {
    const known = this._measured.filter(height => height > 0);
    if (this._estimate === null && known.length > 0) {
      const sum = known.reduce((all, each) => all + each, 0);
      this._estimate = Math.round(sum / known.length);
    }
  }

  /** Pixels from the first row to the top of this one. */
  top(row: number): number {
    return this.between(1, row);
  }

  /** Pixels from the top of one row to the top of a later one. */
  between(row: number, later: number): number {
    let sum = 0;
    for (let each = row; each < later; each++) {
      sum += this.of(each);
    }
    return sum;
  }

  /** The row at a number of pixels, or the nearest. */
  at(offset: number): number {
    let bottom = 0;
    for (let row = 1; row <= this._count; row++) {
      bottom += this.of(row);
      if (bottom > offset) {
        return row;
      }
    }
    return this._count;
  }

  private _count = 0;
  private _estimate: number | null = null;
  private _measured = new Float64Array(1).fill(UNKNOWN);
}
