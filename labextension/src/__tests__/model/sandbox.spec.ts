import type { PartialJSONObject } from '@lumino/coreutils';
import { activeOutputs, sandboxDocument } from '../../model/sandbox';

function display(data: PartialJSONObject) {
  return { output_type: 'display_data', data, metadata: {} };
}

/** The document in the inner frame of a sandbox. */
function inner(text: string): Document {
  const read = (html: string) =>
    new DOMParser().parseFromString(html, 'text/html');
  const outer = read(sandboxDocument(text, 'An "output"'));
  const frame = outer.querySelector('iframe');
  expect(frame?.getAttribute('sandbox')).toBe('');
  expect(frame?.title).toBe('An "output"');
  return read(frame?.getAttribute('srcdoc') ?? '');
}

describe('activeOutputs', () => {
  it('finds what is not shown as it was meant, and leaves the rest', () => {
    const outputs = [
      { output_type: 'stream', name: 'stdout', text: 'x' },
      display({ 'text/html': '<table><tr><td>plain</td></tr></table>' }),
      display({ 'text/html': ['<b style="color: red">', 'x</b>'] }),
      display({ 'image/svg+xml': '<svg/>', 'text/plain': 'x' }),
      display({ 'application/javascript': 'alert(1)' }),
      display({ 'application/vnd.plotly.v1+json': { data: [] } }),
      display({ 'image/png': 'AAAA' })
    ];
    const found = activeOutputs(outputs, []);
    expect(
      found.map(({ index, isDrawn, mimetype }) => [index, isDrawn, mimetype])
    ).toEqual([
      [2, true, 'text/html'],
      [3, true, 'image/svg+xml'],
      [4, false, 'application/javascript'],
      [5, false, 'application/vnd.plotly.v1+json']
    ]);
    expect(found[0].text).toBe('<b style="color: red">x</b>');
    expect(JSON.parse(found[3].text ?? '')).toEqual({ data: [] });
  });

  it('prefers what can be drawn to a program beside it', () => {
    const outputs = [
      display({ 'text/javascript': 'x', 'image/svg+xml': '<svg/>' })
    ];
    expect(activeOutputs(outputs, [])[0].mimetype).toBe('image/svg+xml');
  });

  it('finds what was left out, and knows its data no more', () => {
    const left = (index: number, ...mimetypes: string[]) => ({
      index,
      bytes: 9000,
      mimetypes
    });
    const found = activeOutputs(
      [
        display({}),
        display({ 'text/html': '<b>plain</b>' }),
        { output_type: 'stream', name: 'stdout', text: '' }
      ],
      [
        left(0, 'text/plain', 'text/html'),
        left(1, 'image/svg+xml', 'image/png'),
        left(2, 'text/plain')
      ]
    );
    expect(found).toEqual([
      { index: 0, mimetype: 'text/html', isDrawn: true, text: null },
      { index: 1, mimetype: 'image/svg+xml', isDrawn: true, text: null }
    ]);
  });

  it('knows what was left out once it is there', () => {
    const outputs = [display({ 'text/html': '<b>plain</b>' })];
    const left = [{ index: 0, bytes: 9000, mimetypes: ['text/html'] }];
    expect(activeOutputs(outputs, left)).toEqual([]);
  });
});

describe('sandboxDocument', () => {
  it('allows nothing but what is in the output', () => {
    const policy = inner('<p>x</p>').querySelector(
      'meta[http-equiv="Content-Security-Policy"]'
    );
    expect(policy?.getAttribute('content')).toContain("default-src 'none'");
    expect(policy?.getAttribute('content')).not.toContain('script-src');
  });

  it('leaves out what runs, loads or leads away, and keeps the rest', () => {
    const document = inner(
      '<style>p { color: red }</style><link rel="preconnect" href="http://x">' +
        '<p title="&quot;&amp;">kept</p><script>1</script>' +
        '<a href="http://x" ping="http://x">word</a><iframe></iframe>' +
        '<svg><a xlink:href="http://x"><set attributeName="href"/></a></svg>' +
        '<template><meta http-equiv="refresh"></template>'
    );
    expect(document.body.textContent).toContain('kept');
    expect(document.querySelector('p')?.title).toBe('"&');
    expect(document.querySelector('style')).not.toBeNull();
    expect(
      document.querySelector('script, link, iframe, set, template')
    ).toBeNull();
    expect(document.body.innerHTML).not.toContain('http://x');
  });
});
