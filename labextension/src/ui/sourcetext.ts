/**
 * A source as it is, so that whoever reads it sees all that would run.
 *
 * What cannot be seen, or changes how the text around it looks, is told apart;
 * so are letters that look like ASCII letters, which the server finds.
 */

/** Words with letters that look like ASCII letters, and what these look like. */
export type Lookalikes = Readonly<
  Record<string, Readonly<Record<string, string>>>
>;

/** Why a character is not shown as it is. */
export type Hidden =
  'direction' | 'control' | 'space' | 'invisible' | 'lookalike';

/** A piece of a line. */
export type Piece =
  | { kind: 'text'; text: string }
  /** Written from right to left: shown by itself, it cannot turn the rest. */
  | { kind: 'turned'; text: string }
  | IHiddenPiece;

/** A character that is not shown as it is. */
export interface IHiddenPiece {
  kind: 'hidden';
  text: string;
  code: string;
  why: Hidden;
  /** What a letter looks like and is not. */
  like?: string;
}

/** Where Python or IPython ends a line; of these only two look like an end. */
// eslint-disable-next-line no-control-regex
const END = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/g;

/** A line of which nothing can be mistaken. */
const PLAIN = /^[\t\x20-\x7e]*$/;

/** Why a character is not shown as it is; the first that fits. */
const HIDDEN: readonly [Hidden, RegExp][] = [
  ['direction', /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u],
  ['control', /[\p{Cc}\p{Zl}\p{Zp}]/u],
  // Spaces but the usual one, and letters that look like one.
  ['space', /[\p{Zs}\u115f\u1160\u2800\u3164\uffa0]/u],
  [
    'invisible',
    /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cs}\p{Co}\p{Cn}\ufff9-\ufffc]/u
  ]
];

/** Letters and numbers of scripts that are written from right to left. */
const TURNED =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

const COMBINING = /\p{M}/u;

const WORD = /\p{XID_Continue}+/gu;

/** Accents that one letter may carry; more of them cover other lines. */
const MOST_ACCENTS = 3;

/** The lines of a source; an end that does not look like one is kept. */
export function splitLines(source: string): string[] {
  const lines: string[] = [];
  let start = 0;
  for (const { 0: end, index } of source.matchAll(END)) {
    const seen = end.endsWith('\n') ? '' : end;
    lines.push(source.slice(start, index) + seen);
    start = index + end.length;
  }
  if (start < source.length || lines.length === 0) {
    lines.push(source.slice(start));
  }
  return lines;
}

/** A line in pieces. */
export function readPieces(line: string, lookalikes: Lookalikes): Piece[] {
  if (PLAIN.test(line)) {
    return line ? [{ kind: 'text', text: line }] : [];
  }
  const pieces: Piece[] = [];
  const alike = findAlike(line, lookalikes);
  let accents = 0;
  let at = 0;
  for (const character of line) {
    const like = alike.get(at);
    at += character.length;
    accents = COMBINING.test(character) ? accents + 1 : 0;
    const why = like
      ? 'lookalike'
      : accents > MOST_ACCENTS
        ? 'invisible'
        : whyHidden(character);
    const last = pieces[pieces.length - 1];
    if (why) {
      const code = codeOf(character);
      pieces.push({ kind: 'hidden', text: character, code, why, like });
      continue;
    }
    const kind = TURNED.test(character) ? 'turned' : 'text';
    if (
      last?.kind === kind ||
      (accents > 0 && last && last.kind !== 'hidden')
    ) {
      last.text += character;
    } else {
      pieces.push({ kind, text: character });
    }
  }
  return pieces;
}

/** The lines of a source in pieces. */
export function readSource(source: string, lookalikes: Lookalikes): Piece[][] {
  return splitLines(source).map(line => readPieces(line, lookalikes));
}

/** What letters of a line look like and are not, by their positions. */
function findAlike(line: string, lookalikes: Lookalikes): Map<number, string> {
  const found = new Map<number, string>();
  for (const { 0: word, index } of line.matchAll(WORD)) {
    let at = index;
    for (const letter of lookalikes[word] ? word : '') {
      const like = lookalikes[word][letter];
      if (like) {
        found.set(at, like);
      }
      at += letter.length;
    }
  }
  return found;
}

function whyHidden(character: string): Hidden | undefined {
  return character === ' ' || character === '\t'
    ? undefined
    : HIDDEN.find(([, pattern]) => pattern.test(character))?.[0];
}

function codeOf(character: string): string {
  const code = Number(character.codePointAt(0));
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** The lines, from 1, on which a name stands as a word; all without a name. */
export function linesWith(source: string, name?: string): number[] {
  return source.split(/\r\n?|\n/).flatMap((line, n) => {
    const isThere = name === undefined || line.match(WORD)?.includes(name);
    return isThere ? [n + 1] : [];
  });
}
