import { linesWith, readPieces, splitLines } from '../../ui/sourcetext';

/** Pieces in one line of text: `⟨U+202E direction⟩`, `[turned]`. */
function shown(line: string): string {
  return readPieces(line, {})
    .map(piece => {
      switch (piece.kind) {
        case 'hidden':
          return `⟨${piece.code} ${piece.why}⟩`;
        case 'turned':
          return `[${piece.text}]`;
        default:
          return piece.text;
      }
    })
    .join('');
}

describe('linesWith', () => {
  it('finds a name where it stands as a word', () => {
    const source = 'x = 1\r\nxy = x2\rprint(x)\n"é" + été\n\n# x';
    expect(linesWith(source, 'x')).toEqual([1, 3, 6]);
    expect(linesWith(source, 'été')).toEqual([4]);
    expect(linesWith(source, '__proto__')).toEqual([]);
  });
});

describe('splitLines', () => {
  it.each([
    ['', ['']],
    ['a', ['a']],
    ['a\n', ['a']],
    ['a\n\n', ['a', '']],
    ['\n', ['']],
    ['a\r\nb', ['a', 'b']],
    ['a # x\rb', ['a # x\r', 'b']],
    [
      'a\fb\vc\x1cd\x85e\u2028f\u2029',
      ['a\f', 'b\v', 'c\x1c', 'd\x85', 'e\u2028', 'f\u2029']
    ]
  ])('of %j', (source, lines) => {
    expect(splitLines(source)).toEqual(lines);
  });
});

describe('readPieces', () => {
  it('leaves what can be seen as it is', () => {
    for (const line of ['', 'x = [1]\t# "é"', '变量 = "e\u0301"', '😀']) {
      expect(shown(line)).toBe(line);
    }
  });

  it.each([
    [
      'a\u202eb\u2066c\u061cd',
      'a⟨U+202E direction⟩b⟨U+2066 direction⟩c⟨U+061C direction⟩d'
    ],
    [
      'a\u0000\u001b\u007f\u009b\r',
      'a⟨U+0000 control⟩⟨U+001B control⟩⟨U+007F control⟩⟨U+009B control⟩⟨U+000D control⟩'
    ],
    [
      'a\u00a0\u2003\u3000\u3164b',
      'a⟨U+00A0 space⟩⟨U+2003 space⟩⟨U+3000 space⟩⟨U+3164 space⟩b'
    ],
    [
      'os\u200b.\u00adx\ufeff\ufe0f\u034f',
      'os⟨U+200B invisible⟩.⟨U+00AD invisible⟩x⟨U+FEFF invisible⟩⟨U+FE0F invisible⟩⟨U+034F invisible⟩'
    ],
    [
      '\u{e0041}\u{e0100}\ue000\ud800',
      '⟨U+E0041 invisible⟩⟨U+E0100 invisible⟩⟨U+E000 invisible⟩⟨U+D800 invisible⟩'
    ]
  ])('of %j', (line, expected) => {
    expect(shown(line)).toBe(expected);
  });

  it('keeps what is written from the right to itself, word by word', () => {
    expect(shown('x = "שלום" + "ab" # שלום עולם')).toBe(
      'x = "[שלום]" + "ab" # [שלום] [עולם]'
    );
    expect(shown('م\u0301 = 1')).toBe('[م\u0301] = 1');
  });

  it('shows accents that would cover other lines', () => {
    const accents = '\u0301'.repeat(5);
    expect(shown(`e${accents}x`)).toBe(
      `e${'\u0301'.repeat(3)}⟨U+0301 invisible⟩⟨U+0301 invisible⟩x`
    );
    expect(shown('\u0301')).toBe('\u0301');
  });

  it('loses nothing', () => {
    const line = '\u202ea\u00e9\u05d0\u0301\u200bb';
    const pieces = readPieces(line, {});
    expect(pieces.map(({ text }) => text).join('')).toBe(line);
  });
});
