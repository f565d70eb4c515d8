/** A source as plain text, with all that could hide in it made visible. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { diffLines } from './textdiff';
import type { IDiffLine } from './textdiff';
import { readPieces, splitLines } from './sourcetext';
import type {
  Hidden,
  ISourceLine,
  Lookalikes,
  Mark,
  Piece
} from './sourcetext';
import { element } from './elements';
import { plainName } from './wording';

/** Show what is different between two sources. */
export function createComparison(
  before: string,
  after: string,
  lookalikes: Lookalikes,
  trans: TranslationBundle
): HTMLElement[] {
  const summary = comparisonText(before, after, trans);
  const pre = createText(summary);
  const lines = diffLines(splitLines(before), splitLines(after));
  pre.append(...lines.map(line => createChange(line, lookalikes, trans)));
  return [element('div', 'jp-AgentExecPlain-summary', summary), pre];
}

/** Show a unified diff, but for the two lines of its head. */
export function createDiff(
  diff: string,
  label: string,
  trans: TranslationBundle
): HTMLElement {
  const pre = createText(plainName(label));
  for (const line of diff.split('\n').slice(2)) {
    const kind = line.startsWith('+')
      ? 'added'
      : line.startsWith('-')
        ? 'removed'
        : 'same';
    const text = /^[-+ ]/.test(line) ? line.slice(1) : line;
    pre.append(createChange({ kind, text }, {}, trans));
  }
  return pre;
}

/** How many lines are different. */
export function comparisonText(
  before: string,
  after: string,
  trans: TranslationBundle
): string {
  const lines = diffLines(splitLines(before), splitLines(after));
  const count = (kind: IDiffLine['kind']) =>
    lines.filter(line => line.kind === kind).length;
  return trans.__(
    'Lines added: %1, removed: %2',
    count('added'),
    count('removed')
  );
}

/** A line of a comparison. */
function createChange(
  { kind, text }: IDiffLine,
  lookalikes: Lookalikes,
  trans: TranslationBundle
): HTMLElement {
  const signs = {
    same: [' ', ''],
    added: ['+', trans.__('Added:')],
    removed: ['−', trans.__('Removed:')]
  } as const;
  const [sign, word] = signs[kind];
  const line = element('span', 'jp-AgentExecPlain-line');
  line.dataset.change = kind;
  const shown = element('span', 'jp-AgentExecPlain-sign', sign);
  shown.setAttribute('aria-hidden', 'true');
  const code = element('code', 'jp-AgentExecPlain-code');
  const pieces = readPieces(text, lookalikes);
  code.append(...pieces.map(piece => createPiece(piece, trans)));
  line.append(
    shown,
    element('span', 'jp-AgentExec-visuallyHidden', word),
    code
  );
  return line;
}

/** What a source has that needs attention. */
export function summaryText(
  lines: readonly ISourceLine[],
  trans: TranslationBundle
): string {
  const count = lines.length;
  const marked = lines.filter(({ mark }) => mark !== null).length;
  const all = lines.flatMap(({ pieces }) => pieces);
  const alike = all.filter(each => 'like' in each).length;
  const hidden = all.filter(({ kind }) => kind === 'hidden').length - alike;
  return [
    trans._n('%1 line', '%1 lines', count, count),
    marked > 0
      ? trans._n(
          '%1 line is a shell command or a magic',
          '%1 lines are shell commands or magics',
          marked,
          marked
        )
      : '',
    hidden > 0
      ? trans._n(
          '%1 invisible character is shown by its code point',
          '%1 invisible characters are shown by their code points',
          hidden,
          hidden
        )
      : '',
    alike > 0
      ? trans._n(
          '%1 look-alike letter is shown by its code point',
          '%1 look-alike letters are shown by their code points',
          alike,
          alike
        )
      : ''
  ]
    .filter(Boolean)
    .join(' · ');
}

/** What a line is, if it is not code in the kernel's language. */
export function createMark(mark: Mark, trans: TranslationBundle): HTMLElement {
  const words = {
    shell: trans.__('shell'),
    magic: trans.__('magic'),
    help: trans.__('help')
  };
  return element('span', 'jp-AgentExecPlain-mark', words[mark]);
}

/** What a character does that is not shown as it is. */
function hiddenText(
  { like, why }: { like?: string; why: Hidden },
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

/** A text that scrolls, also with the keys. */
function createText(label: string): HTMLPreElement {
  const pre = element('pre', 'jp-AgentExecPlain');
  pre.tabIndex = 0;
  pre.setAttribute('role', 'group');
  pre.setAttribute('aria-label', label);
  pre.dir = 'ltr';
  return pre;
}

/** A piece of a line, so that it is seen and turns nothing. */
export function createPiece(
  piece: Extract<Piece, { kind: 'hidden' }>,
  trans: TranslationBundle
): HTMLElement;
export function createPiece(piece: Piece, trans: TranslationBundle): Node;
export function createPiece(piece: Piece, trans: TranslationBundle): Node {
  switch (piece.kind) {
    case 'text':
      return document.createTextNode(piece.text);
    case 'turned':
      return element('bdi', '', piece.text);
    case 'hidden': {
      const chip = element('span', 'jp-AgentExecPlain-hidden', piece.code);
      const text = `${piece.code}: ${hiddenText(piece, trans)}`;
      chip.title = text;
      chip.setAttribute('role', 'img');
      chip.setAttribute('aria-label', text);
      return chip;
    }
  }
}
