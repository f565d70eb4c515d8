/** How what is looked for, and found, is said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ApiError } from '../api/errors';
import { plainName } from './notebookwording';
import { describeError, quoted } from './wording';
import type { IAdvice } from './wording';
import type {
  IAgentSession,
  IRecordedImage,
  ISearchHit,
  ITarget
} from '../tokens';

/** What the server puts around matches. */
const MATCH = /\u2068([^\u2068\u2069]*)\u2069/;

/** A part of a snippet. */
export interface ISnippetPart {
  text: string;
  isMatch: boolean;
}

/** A text in one line, with nothing in it that disguises the rest. */
export function inOneLine(text: string): string {
  return plainName(text.replace(/\s+/g, ' ').trim());
}

/** A snippet in the parts that match and those between them. */
export function snippetParts(snippet: string): ISnippetPart[] {
  // At each odd place is what the expression has captured.
  return snippet
    .split(MATCH)
    .map((text, place) => ({
      text: plainName(text.replace(/\s+/g, ' ')),
      isMatch: place % 2 === 1
    }))
    .filter(({ text }) => text !== '');
}

/** The first line of a source that says something. */
export function sourceLine(source: string): string {
  return inOneLine(source.split('\n').find(line => line.trim() !== '') ?? '');
}

/** What a session is called in a list. */
export function titleText(
  { agent, title }: { agent: string; title: string | null },
  trans: TranslationBundle
): string {
  return title
    ? quoted(inOneLine(title))
    : trans.__('Session of %1', quoted(inOneLine(agent)));
}

/** Where code runs, in general. */
export function targetWord(
  kind: ITarget['kind'],
  trans: TranslationBundle
): string {
  switch (kind) {
    case 'scratch':
      return trans.__('Scratch kernel');
    case 'notebook':
      return trans.__('Notebook');
    case 'kernel':
      return trans.__('Running kernel');
  }
}

/** Where a session's code runs: a notebook is named. */
export function targetText(
  { path, target }: IAgentSession,
  trans: TranslationBundle
): string {
  return target.kind === 'notebook'
    ? inOneLine(path ?? target.path)
    : targetWord(target.kind, trans);
}

/** Which cell of which session an image came from. */
export function imageText(
  image: IRecordedImage,
  trans: TranslationBundle
): string {
  return trans.__('Cell %1 of %2', image.seq, titleText(image, trans));
}

/** How many cells were found, as those hear it who listen to the page. */
export function foundText(
  hits: readonly ISearchHit[],
  hasMore: boolean,
  trans: TranslationBundle
): string {
  const count = hits.length;
  if (count === 0) {
    return trans.__('No cell matches');
  }
  return hasMore
    ? trans.__('The newest %1 cells that match', count)
    : trans._n('%1 cell matches', '%1 cells match', count, count);
}

/** Why nothing can be found. */
export function describeSearchError(
  error: unknown,
  trans: TranslationBundle
): IAdvice {
  if (error instanceof ApiError && error.code === 'history_unavailable') {
    return {
      title: trans.__('The history cannot be searched yet'),
      hint: trans.__('Search is being prepared: %1', error.message)
    };
  }
  if (error instanceof ApiError && error.status === 400) {
    return {
      title: trans.__('This search is not valid'),
      hint: error.message
    };
  }
  return describeError(error, trans);
}
