/** How a step of a stream changes a list of outputs. */
import type * as nbformat from '@jupyterlab/nbformat';
import { JSONExt } from '@lumino/coreutils';
import type { IOutputChange } from '../wire';

/** The whole text of a field that nbformat may keep in lines. */
export function joinText(text: unknown): string {
  return Array.isArray(text) ? text.join('') : String(text ?? '');
}

/**
 * The outputs after a change.
 *
 * Outputs that did not change stay the same objects, so that whoever shows
 * them can tell. A change that does not fit (a step was missed) gives null.
 */
export function applyOutputChange(
  outputs: readonly nbformat.IOutput[],
  change: IOutputChange
): nbformat.IOutput[] | null {
  const { index } = change;
  if (index < 0 || index > outputs.length) {
    return null;
  }
  if (change.truncate) {
    return outputs.slice(0, index);
  }
  if (change.output) {
    const next = outputs.slice();
    next[index] = change.output;
    return next;
  }
  const output = outputs[index];
  if (change.append === undefined || output?.output_type !== 'stream') {
    return null;
  }
  const next = outputs.slice();
  next[index] = { ...output, text: joinText(output.text) + change.append };
  return next;
}

/**
 * The steps that lead from some outputs to others.
 *
 * Text that only grew is appended, so that a long stream is not drawn anew.
 */
export function outputChanges(
  before: readonly nbformat.IOutput[],
  after: readonly nbformat.IOutput[]
): IOutputChange[] {
  let index = 0;
  while (
    index < Math.min(before.length, after.length) &&
    JSONExt.deepEqual(before[index], after[index])
  ) {
    index++;
  }
  const changes: IOutputChange[] = [];
  if (index < before.length) {
    const [old, next] = [before[index], after[index]];
    const append = index === before.length - 1 && grownBy(old, next);
    changes.push(append ? { index, append } : { index, truncate: true });
    index += append ? 1 : 0;
  }
  for (; index < after.length; index++) {
    changes.push({ index, output: after[index] });
  }
  return changes;
}

/** What a stream has more than before; empty if it is another output. */
function grownBy(
  old: nbformat.IOutput,
  next: nbformat.IOutput | undefined
): string {
  const stream =
    next?.output_type === 'stream' &&
    old.output_type === 'stream' &&
    old.name === next.name;
  const [from, to] = [joinText(old.text), joinText(next?.text)];
  return stream && to.startsWith(from) ? to.slice(from.length) : '';
}
