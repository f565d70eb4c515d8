/** Long outputs, cut in the middle, with what was left out. */
import type * as nbformat from '@jupyterlab/nbformat';
import { joinText } from '../api/outputs';

/** What is shown of an output, and what is not. */
export interface IAbridged {
  output: nbformat.IOutput;
  /** Lines not shown; 0 if what is not shown is not lines of text. */
  hiddenLines: number;
  /** Characters not shown; 0 when everything is. */
  hiddenLength: number;
}

/** How much is shown of an output. */
export interface ILimits {
  /** Lines kept at either end of a long text. */
  endLines: number;
  /** Characters kept at either end of a long text. */
  endLength: number;
  /** Characters above which a rich representation is not shown at once. */
  richLength: number;
}

/** What a sidebar can show at once without the page getting slow. */
export const LIMITS: ILimits = {
  endLines: 20,
  endLength: 4000,
  richLength: 100_000
};

/** Says in the text itself how much is missing there. */
export type Marker = (lines: number, length: number) => string;

/** An output as it is shown at first. */
export function abridge(
  output: nbformat.IOutput,
  marker: Marker,
  limits: ILimits = LIMITS
): IAbridged {
  switch (output.output_type) {
    case 'stream': {
      const cut = abridgeText(joinText(output.text), marker, limits);
      return cut
        ? { ...cut, output: { ...output, text: cut.text } }
        : whole(output);
    }
    case 'error': {
      const traceback = (output.traceback as string[] | undefined) ?? [];
      const cut = abridgeText(traceback.join('\n'), marker, limits);
      return cut
        ? { ...cut, output: { ...output, traceback: cut.text.split('\n') } }
        : whole(output);
    }
    default:
      return abridgeBundle(output, marker, limits);
  }
}

function whole(output: nbformat.IOutput): IAbridged {
  return { output, hiddenLines: 0, hiddenLength: 0 };
}

function abridgeBundle(
  output: nbformat.IOutput,
  marker: Marker,
  limits: ILimits
): IAbridged {
  const shown: nbformat.IMimeBundle = {};
  let hiddenLines = 0;
  let hiddenLength = 0;
  const data = (output.data ?? {}) as nbformat.IMimeBundle;
  for (const [mimetype, value] of Object.entries(data)) {
    const cut =
      mimetype === 'text/plain'
        ? abridgeText(joinText(value), marker, limits)
        : null;
    const length = lengthOf(value);
    if (cut) {
      shown[mimetype] = cut.text;
      hiddenLines += cut.hiddenLines;
      hiddenLength += cut.hiddenLength;
    } else if (!isRaster(mimetype) && length > limits.richLength) {
      hiddenLength += length;
    } else {
      shown[mimetype] = value;
    }
  }
  if (hiddenLength === 0) {
    return whole(output);
  }
  if (Object.keys(shown).length === 0) {
    shown['text/plain'] = marker(0, hiddenLength);
  }
  return { output: { ...output, data: shown }, hiddenLines, hiddenLength };
}

function isRaster(mimetype: string): boolean {
  return mimetype.startsWith('image/') && mimetype !== 'image/svg+xml';
}

function lengthOf(value: unknown): number {
  if (typeof value === 'string') {
    return value.length;
  }
  return Array.isArray(value) && value.every(each => typeof each === 'string')
    ? joinText(value).length
    : JSON.stringify(value ?? null).length;
}

/** The two ends of a long text; null for one that is short enough. */
function abridgeText(
  text: string,
  marker: Marker,
  { endLines, endLength }: ILimits
): { text: string; hiddenLines: number; hiddenLength: number } | null {
  const headEnd = cutAfterLines(text, endLines, endLength);
  const tailStart = cutBeforeLines(text, endLines, endLength);
  // What is hidden should be worth a click.
  if (
    tailStart - headEnd <= endLength / 4 &&
    !manyLines(text, headEnd, tailStart, endLines)
  ) {
    return null;
  }
  if (tailStart <= headEnd) {
    return null;
  }
  const hiddenLines = countLines(text, headEnd, tailStart);
  const hiddenLength = tailStart - headEnd;
  const head = text.slice(0, headEnd);
  const gap = head.endsWith('\n') ? '' : '\n';
  const note = marker(hiddenLines, hiddenLength);
  return {
    text: `${head}${gap}${note}\n${text.slice(tailStart)}`,
    hiddenLines,
    hiddenLength
  };
}

function manyLines(
  text: string,
  start: number,
  end: number,
  few: number
): boolean {
  return end > start && countLines(text, start, end) > few / 2;
}

/** Where the head ends: after some lines, or within a very long one. */
function cutAfterLines(text: string, lines: number, length: number): number {
  let end = 0;
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf('\n', end);
    if (next < 0) {
      end = text.length;
      break;
    }
    end = next + 1;
  }
  return wholeCharacter(text, Math.min(end, length));
}

/** Where the tail starts: before some lines, or within a very long one. */
function cutBeforeLines(text: string, lines: number, length: number): number {
  let start = text.endsWith('\n') ? text.length - 1 : text.length;
  for (let line = 0; line < lines; line++) {
    const previous = text.lastIndexOf('\n', start - 1);
    if (previous < 0 || start === 0) {
      start = 0;
      break;
    }
    start = previous;
  }
  const after = start > 0 ? start + 1 : 0;
  return wholeCharacter(text, Math.max(after, text.length - length));
}

/** Not between the two halves of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at;
}

function countLines(text: string, start: number, end: number): number {
  let count = 0;
  for (
    let at = text.indexOf('\n', start);
    at >= 0 && at < end;
    at = text.indexOf('\n', at + 1)
  ) {
    count += 1;
  }
  return count;
}
