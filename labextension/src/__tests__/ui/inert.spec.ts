import { inertHTML, isHarmlessTeX } from '../../ui/inert';

/** HTML, and what the server leaves of it; tests/text/test_inert.py holds it to that. */
const CORPUS = jest.requireActual<{ html: string; inert: string }[]>(
  '../../../../tests/text/inert_html.json'
);

/** A tree without images that show nothing, whatever the order of attributes. */
function tree(html: string): HTMLElement {
  const { body } = new DOMParser().parseFromString(html.trim(), 'text/html');
  body.querySelectorAll('img:not([src])').forEach(each => each.remove());
  return body;
}

describe('inertHTML', () => {
  it.each(CORPUS.map(({ html, inert }) => [html, inert]))(
    'leaves of %s what the server leaves',
    (html, inert) => {
      const [ours, theirs] = [tree(inertHTML(html)), tree(inert)];
      const isSame = ours.isEqualNode(theirs);
      expect(isSame ? 'the same' : ours.innerHTML).toBe(
        isSame ? 'the same' : theirs.innerHTML
      );
    }
  );
});

describe('isHarmlessTeX', () => {
  it('finds what the server finds', () => {
    const { harmful, harmless } = jest.requireActual<
      Record<'harmful' | 'harmless', string[]>
    >('../../../../tests/text/inert_tex.json');
    expect(harmful.filter(isHarmlessTeX)).toEqual([]);
    expect(harmless.filter(isHarmlessTeX)).toEqual(harmless);
  });
});
