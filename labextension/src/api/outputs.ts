/** How a step of a stream changes a list of outputs. */
import type * as nbformat from '@jupyterlab/nbformat';
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
