/** What is different between two texts, line by line. */

/** A line of a comparison. */
export interface IDiffLine {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** Pairs of lines that are compared; beyond that, all between is replaced. */
const MOST_PAIRS = 1_000_000;

/** Compare two lists of lines by their longest common subsequence. */
export function diffLines(
  before: readonly string[],
  after: readonly string[]
): IDiffLine[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) {
    start++;
  }
  let end = 0;
  while (
    end < shorter - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end++;
  }
  const removed = before.slice(start, before.length - end);
  const added = after.slice(start, after.length - end);
  return [
    ...as('same', before.slice(0, start)),
    ...(removed.length * added.length > MOST_PAIRS
      ? [...as('removed', removed), ...as('added', added)]
      : compare(removed, added)),
    ...as('same', before.slice(before.length - end))
  ];
}

function as(kind: IDiffLine['kind'], lines: readonly string[]): IDiffLine[] {
  return lines.map(text => ({ kind, text }));
}

function compare(
  before: readonly string[],
  after: readonly string[]
): IDiffLine[] {
  const common = commonLengths(before, after);
  const width = after.length + 1;
  const lines: IDiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      lines.push({ kind: 'same', text: before[i++] });
      j++;
    } else if (common[(i + 1) * width + j] >= common[i * width + j + 1]) {
      lines.push({ kind: 'removed', text: before[i++] });
    } else {
      lines.push({ kind: 'added', text: after[j++] });
    }
  }
  return lines.concat(
    as('removed', before.slice(i)),
    as('added', after.slice(j))
  );
}

/** For each pair of places, how many lines are common from there on. */
function commonLengths(
  before: readonly string[],
  after: readonly string[]
): Uint32Array {
  const width = after.length + 1;
  const common = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      common[i * width + j] =
        before[i] === after[j]
          ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  return common;
}
