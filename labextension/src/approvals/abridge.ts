/** Long outputs, cut in the middle. */
import type * as nbformat from '@jupyterlab/nbformat';
import { joinText } from '../api/outputs';

/** Lines and characters kept at either end of a long text. */
const LINES = 20;
const LENGTH = 4000;

/** Characters above which a rich representation is not shown at once. */
const RICH = 100_000;

/** Says in the text itself how many characters are missing there. */
export type Marker = (length: number) => string;

/** What is shown of an output at first, and how many characters are not. */
export function abridge(
  output: nbformat.IOutput,
  marker: Marker
): { output: nbformat.IOutput; hidden: number } {
  let hidden = 0;
  const cut = (text: string): string => {
    const lines = text.split('\n');
    const head = lines.slice(0, LINES).join('\n').slice(0, LENGTH);
    // After the line end that ends the text comes an empty line.
    const tail = lines
      .slice(-LINES - 1)
      .join('\n')
      .slice(-LENGTH);
    const length = text.length - head.length - tail.length;
    if (length < LENGTH / 4 && lines.length < 3 * LINES) {
      return text; // what is hidden should be worth a click
    }
    hidden += length;
    // Not between the two halves of a surrogate pair.
    const start = head.replace(/[\ud800-\udbff]$/, '');
    const end = tail.replace(/^[\udc00-\udfff]/, '');
    return `${start}\n${marker(length)}\n${end}`;
  };
  const { data, output_type, text, traceback } = output;
  if (output_type === 'stream') {
    const shown = { ...output, text: cut(joinText(text)) };
    return { output: hidden > 0 ? shown : output, hidden };
  }
  if (output_type === 'error') {
    const lines = (traceback as string[] | undefined) ?? [];
    const shown = { ...output, traceback: cut(lines.join('\n')).split('\n') };
    return { output: hidden > 0 ? shown : output, hidden };
  }
  const shown: nbformat.IMimeBundle = {};
  for (const [mimetype, value] of Object.entries(data ?? {})) {
    const length = lengthOf(value);
    if (mimetype === 'text/plain') {
      shown[mimetype] = cut(joinText(value));
    } else if (length <= RICH || /^image\/(?!svg)/.test(mimetype)) {
      shown[mimetype] = value;
    } else {
      hidden += length;
    }
  }
  if (hidden > 0 && Object.keys(shown).length === 0) {
    shown['text/plain'] = marker(hidden);
  }
  return { output: hidden > 0 ? { ...output, data: shown } : output, hidden };
}

function lengthOf(value: unknown): number {
  return typeof value === 'string'
    ? value.length
    : JSON.stringify(value ?? null).length;
}
