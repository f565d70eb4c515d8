/** What is different between two texts, word by word. */
import { diffLines } from './linediff';
import type { IDiffLine } from './linediff';

/** Words, spaces, line ends, and each other character. */
const TOKENS = /\n|[^\S\n]+|[\p{L}\p{N}_]+|./gu;

/** Compare two texts; neighbours of one kind are one piece. */
export function diffWords(before: string, after: string): IDiffLine[] {
  const pieces: IDiffLine[] = [];
  const tokens = (text: string) => text.match(TOKENS) ?? [];
  for (const { kind, text } of diffLines(tokens(before), tokens(after))) {
    const last = pieces[pieces.length - 1];
    if (last?.kind === kind) {
      last.text += text;
    } else {
      pieces.push({ kind, text });
    }
  }
  return pieces;
}
