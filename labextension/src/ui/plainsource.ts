/** A source as plain text, with all that could hide in it made visible. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { readPieces } from './sourcetext';
import type { IHiddenPiece, Lookalikes, Piece } from './sourcetext';
import { element } from './elements';

/** How long a source is, and how many of its characters are not shown as they are. */
export function summaryText(
  lines: readonly (readonly Piece[])[],
  trans: TranslationBundle
): string {
  const hidden = lines.flat().filter(({ kind }) => kind === 'hidden').length;
  const blank = lines.filter(isBlank).length;
  const count = lines.length;
  const texts = [
    count > 1 && blank === 0 && trans._n('%1 line', '%1 lines', count),
    count > 1 &&
      blank > 0 &&
      trans._n(
        '%1 line, %2 of them blank',
        '%1 lines, %2 of them blank',
        count,
        blank
      ),
    hidden > 0 &&
      trans._n(
        '%1 character that is invisible or looks like another is shown by its code point',
        '%1 characters that are invisible or look like others are shown by their code points',
        hidden
      )
  ];
  return texts.filter(Boolean).join(' · ');
}

/** Whether there is nothing to be seen in a line. */
function isBlank(line: readonly Piece[]): boolean {
  return line.every(({ kind, text }) => kind === 'text' && !text.trim());
}

/** What a character does that is not shown as it is. */
function hiddenText(
  { like, why }: IHiddenPiece,
  trans: TranslationBundle
): string {
  return {
    direction: trans.__('changes the direction of the surrounding text'),
    control: trans.__('a control character'),
    space: trans.__('looks like a space but is not one'),
    invisible: trans.__('invisible'),
    lookalike: trans.__('looks like “%1” but is a different letter', like)
  }[why];
}

/** Show what cannot be seen, or turns text, in a source that has colours. */
export function showHidden(
  source: Node,
  lookalikes: Lookalikes,
  trans: TranslationBundle
): void {
  const walker = document.createTreeWalker(source, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) {
    texts.push(walker.currentNode as Text);
  }
  for (const text of texts) {
    const lines = text.data
      .split('\n')
      .map(line => readPieces(line, lookalikes))
      .map(pieces => pieces.map(piece => createPiece(piece, trans)));
    text.replaceWith(
      ...lines.flatMap((nodes, index) => (index > 0 ? ['\n', ...nodes] : nodes))
    );
  }
}

/** A piece of a line, so that it is seen and turns nothing. */
function createPiece(piece: Piece, trans: TranslationBundle): Node {
  return piece.kind === 'hidden'
    ? createChip(piece, trans)
    : piece.kind === 'turned'
      ? element('bdi', '', piece.text)
      : document.createTextNode(piece.text);
}

/** What stands for a character that is not shown as it is. */
export function createChip(
  piece: IHiddenPiece,
  trans: TranslationBundle
): HTMLElement {
  const chip = element('span', 'jp-AgentExecPlain-hidden', piece.code);
  chip.title = `${piece.code}: ${hiddenText(piece, trans)}`;
  chip.setAttribute('role', 'img');
  chip.setAttribute('aria-label', chip.title);
  return chip;
}
