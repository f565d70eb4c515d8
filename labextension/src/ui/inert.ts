/**
 * HTML in which nothing runs, loads or covers something.
 *
 * The policy is the server's, in inert.py: what enters a notebook comes from
 * there. In the panel, the page sanitizes as well, since it renders Markdown
 * itself. tests/text/inert_html.json and inert_tex.json hold both to the same results.
 */

/** Elements that are kept; of others, only what stands in them. */
const ELEMENTS = new Set(
  (
    'table caption colgroup col thead tbody tfoot tr th td ' +
    'a abbr b blockquote br cite code dd del details dfn div dl dt em ' +
    'h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span ' +
    'strong sub summary sup tt u ul var wbr'
  ).split(' ')
);

/** Elements that go with all that stands in them, and those that never show. */
const GONE =
  'base, embed, frame, frameset, iframe, link, math, meta, noembed, noframes, ' +
  'noscript, object, plaintext, script, select, style, svg, template, textarea, title, xmp';

const NUMBER = /^\d{1,4}$/;
const STYLE = { style: /^text-align: (left|right|center);$/ };
const CELL = {
  ...STYLE,
  align: /^(left|right|center)$/,
  colspan: NUMBER,
  rowspan: NUMBER,
  valign: /^(top|middle|bottom)$/
};

/** Attributes that are kept, by element, with what they may be. */
const ATTRIBUTES: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  a: { href: /^(https?|mailto):/i, title: /^/ },
  abbr: { title: /^/ },
  img: {
    alt: /^/,
    height: NUMBER,
    src: /^data:image\/(png|jpeg|gif|webp|bmp);base64,[A-Za-z0-9+/=\s]*$/,
    width: NUMBER
  },
  ol: { start: NUMBER },
  table: { border: /^[01]$/, class: /^dataframe$/ },
  td: CELL,
  th: { ...CELL, scope: /^(col|row|colgroup|rowgroup)$/ },
  tr: STYLE
};

/** LaTeX commands that define others, load something, or set HTML attributes. */
const HARMFUL_TEX =
  /\\(?:[gex]?def|(?:future)?let|global|require|label|definecolor|mathtoolsset|setOptions|(?:re)?new[A-Za-z]*|New[A-Za-z]*|provide[A-Za-z]*|Declare[A-Za-z]*|href|url|html[A-Za-z]*|style|class|cssId|data|mmlToken|unicode|includegraphics|bbox)(?![A-Za-z])/;

/** Whether LaTeX has no command that reaches beyond its own formula. */
export function isHarmlessTeX(source: string): boolean {
  return !HARMFUL_TEX.test(source);
}

/** Sanitize HTML. */
export function inertHTML(html: string): string {
  const { body } = new DOMParser().parseFromString(html, 'text/html');
  body.querySelectorAll(GONE).forEach(each => each.remove());
  // From the innermost outwards, since those that go leave what they hold.
  for (const element of Array.from(body.querySelectorAll('*')).reverse()) {
    if (!ELEMENTS.has(element.localName)) {
      element.replaceWith(...element.childNodes);
      continue;
    }
    if (element.classList.contains('dataframe')) {
      element.className = 'dataframe';
    }
    const allowed = ATTRIBUTES[element.localName];
    for (const { name, value } of Array.from(element.attributes)) {
      if (!allowed?.[name]?.test(value)) {
        element.removeAttribute(name);
      }
    }
    if (element.localName === 'img' && !element.hasAttribute('src')) {
      element.remove(); // it would show nothing
    }
    if (element.localName === 'a') {
      element.setAttribute('rel', 'noopener noreferrer');
      element.setAttribute('target', '_blank');
    }
  }
  return body.innerHTML.trim();
}
