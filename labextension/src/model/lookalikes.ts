/**
 * Letters that look like ASCII ones where a reader takes them for those.
 *
 * `\u0440assword` begins with a Cyrillic letter, and Python reads `\uff45val` as
 * `eval`. What is written in one script is left alone. The same as
 * `jupyter_agent_exec/lookalikes.py`, which says more; tests hold them together.
 */

/** From confusables.txt of Unicode's UTS 39: letters, and what they look like. */
const TABLE: readonly (readonly [string, string])[] = [
  ['\u0251\u0261\u1d04\u1d0f\u1d1c\u1d20\u1d21\u1d22\ua731', 'agcouvwzs'],
  [
    '\u037f\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d',
    'JABEZHlKMN'
  ],
  [
    '\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b3\u03b9\u03bd\u03bf',
    'OPTYXayivo'
  ],
  [
    '\u03c1\u03c3\u03c5\u03d2\u03dc\u03f1\u03f2\u03f3\u03f9\u03fa',
    'pouYFpcjCM'
  ],
  ['\u1d26\u1fbe', 'ri'],
  [
    '\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e',
    'SlJABEKMHO'
  ],
  [
    '\u0420\u0421\u0422\u0423\u0425\u042c\u0430\u0433\u0435\u043e',
    'PCTYXbareo'
  ],
  [
    '\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u0461\u0474\u0475',
    'pcyxsijwVv'
  ],
  [
    '\u04ae\u04af\u04bb\u04bd\u04c0\u04cf\u0501\u050c\u051b\u051c',
    'YyhelidGqW'
  ],
  ['\u051d\ua647', 'wi'],
  [
    '\u054d\u054f\u0555\u0561\u0563\u0566\u0570\u0578\u057c\u057d',
    'USOwqqhnnu'
  ],
  ['\u0581\u0584\u0585', 'gfo'],
  ['\u10e7\u10ff', 'yo'],
  [
    '\u13a0\u13a1\u13a2\u13a5\u13a9\u13aa\u13ab\u13ac\u13b3\u13b7',
    'DRTiYAJEWM'
  ],
  [
    '\u13bb\u13bd\u13c0\u13c2\u13c3\u13cf\u13d2\u13d4\u13d5\u13d9',
    'HYGhZbRWSV'
  ],
  [
    '\u13da\u13de\u13df\u13e2\u13e6\u13e7\u13f3\u13f4\uab75\uab81',
    'SLCPKdGBir'
  ],
  ['\uab83\uab93\uaba9\uabaa\uabaf', 'wzvsc'],
  [
    '\u2c85\u2c8e\u2c92\u2c94\u2c98\u2c9a\u2c9e\u2c9f\u2ca2\u2ca3',
    'rHlKMNOoPp'
  ],
  ['\u2ca4\u2ca5\u2ca6\u2ca8\u2cac\u2cd0', 'CcTYXL'],
  [
    '\ua4d0\ua4d1\ua4d2\ua4d3\ua4d4\ua4d6\ua4d7\ua4d9\ua4da\ua4dc',
    'BPdDTGKJCZ'
  ],
  [
    '\ua4dd\ua4df\ua4e0\ua4e1\ua4e2\ua4e3\ua4e6\ua4e7\ua4ea\ua4eb',
    'FMNLSRVHWX'
  ],
  ['\ua4ec\ua4ee\ua4f0\ua4f2\ua4f3\ua4f4', 'YAElOU']
];

const LOOKALIKES: ReadonlyMap<string, string> = new Map(
  TABLE.flatMap(([letters, likes]) =>
    Array.from(letters, (letter, at): [string, string] => [letter, likes[at]])
  )
);

const WORD = /\p{XID_Continue}+/gu;
const PART = /[^_]+/g;
const ASCII = /^[\0-\x7f]*$/;
const ASCII_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const ASCII_LETTER = /[A-Za-z]/;

/** What letters of a text look like and are not, by their positions. */
export function lookalikes(text: string): Map<number, string> {
  const found = new Map<number, string>();
  for (const { 0: word, index: start } of text.matchAll(WORD)) {
    if (ASCII.test(word)) {
      continue;
    }
    if (ASCII_NAME.test(read(word)) || ASCII_LETTER.test(word)) {
      each(word, (letter, at) => {
        if (!ASCII.test(letter) && ASCII_NAME.test(`a${read(letter)}`)) {
          found.set(start + at, read(letter));
        }
      });
    }
    const isCalled = text.startsWith('(', start + word.length);
    for (const { 0: part, index } of word.matchAll(PART)) {
      const letters = Array.from(part);
      const isWhole =
        isCalled &&
        letters.length > 1 &&
        letters.every(letter => LOOKALIKES.has(letter));
      if (isWhole || ASCII_LETTER.test(part)) {
        each(part, (letter, at) => {
          const like = LOOKALIKES.get(letter);
          if (like !== undefined) {
            found.set(start + index + at, like);
          }
        });
      }
    }
  }
  return found;
}

/** Call for each letter with its position. */
function each(text: string, call: (letter: string, at: number) => void): void {
  let at = 0;
  for (const letter of text) {
    call(letter, at);
    at += letter.length;
  }
}

/** What Python reads a name as. */
function read(name: string): string {
  return name.normalize('NFKC');
}
