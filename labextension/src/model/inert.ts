/**
 * What of an output may be copied into a person's notebook.
 *
 * The copy's cell is flagged trusted, as the server's own are, so that the
 * notebook keeps the trust that it had: what can run, load or cover something
 * must not be in it. docs/lab.md says what is left.
 */
import type * as nbformat from '@jupyterlab/nbformat';
import { joinText } from '../api/outputs';

/** Images without a program in them. */
const RASTER = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** Text whose markup may bring HTML of its own is copied as it was written. */
const MARKUP = ['text/markdown', 'text/latex'];

/** Elements that are kept; of others, only what stands in them. */
const ELEMENTS = new Set(
  (
    'a abbr b blockquote br caption code col colgroup dd del dfn div dl dt em ' +
    'h1 h2 h3 h4 h5 h6 hr i ins kbd li mark ol p pre q s samp small span ' +
    'strong sub sup table tbody td tfoot th thead tr tt u ul var'
  ).split(' ')
);

/** Elements that go with all that stands in them. */
const GONE =
  'base, embed, frame, frameset, iframe, link, math, meta, noembed, noframes, ' +
  'noscript, object, script, select, style, svg, template, textarea, title, xmp';

/** Attributes that are kept, with what they may be. */
const ATTRIBUTES: Readonly<Record<string, RegExp>> = {
  border: /^[01]$/,
  class: /^dataframe$/,
  colspan: /^\d{1,4}$/,
  href: /^(https?|mailto):/i,
  rowspan: /^\d{1,4}$/,
  scope: /^(col|row|colgroup|rowgroup)$/,
  start: /^\d{1,4}$/,
  title: /^/
};

/** HTML in which nothing runs, loads or leaves its place. */
export function inertHTML(html: string): string {
  const { body } = new DOMParser().parseFromString(html, 'text/html');
  body.querySelectorAll(GONE).forEach(each => each.remove());
  // From the innermost outwards, since those that go leave what they hold.
  for (const element of Array.from(body.querySelectorAll('*')).reverse()) {
    if (!ELEMENTS.has(element.localName)) {
      element.replaceWith(...element.childNodes);
      continue;
    }
    for (const { name, value } of Array.from(element.attributes)) {
      if (!ATTRIBUTES[name]?.test(value.trim())) {
        element.removeAttribute(name);
      }
    }
    if (element.hasAttribute('href')) {
      element.setAttribute('rel', 'noopener noreferrer');
      element.setAttribute('target', '_blank');
    }
  }
  return body.innerHTML.trim();
}

/** A mime bundle with what is inert of another; what is not is noted. */
function inertData(
  data: nbformat.IMimeBundle,
  held: Set<string>
): nbformat.IMimeBundle {
  const kept: nbformat.IMimeBundle = {};
  for (const [mimetype, value] of Object.entries(data)) {
    if (mimetype === 'text/plain' || RASTER.includes(mimetype)) {
      kept[mimetype] = joinText(value);
    } else if (mimetype === 'text/html') {
      const html = inertHTML(joinText(value));
      if (html) {
        kept[mimetype] = html;
      } else {
        held.add(mimetype);
      }
    } else if (MARKUP.includes(mimetype)) {
      kept['text/plain'] = joinText(value);
    } else {
      held.add(mimetype);
    }
  }
  return kept;
}

/** Inert copies of outputs, and the mime types that they are without. */
export function inertOutputs(outputs: readonly nbformat.IOutput[]): {
  outputs: nbformat.IOutput[];
  held: string[];
} {
  const held = new Set<string>();
  const copies = outputs.flatMap((output): nbformat.IOutput[] => {
    switch (output.output_type) {
      case 'stream':
      case 'error':
        return [output];
      case 'display_data':
      case 'execute_result': {
        const data = inertData(output.data as nbformat.IMimeBundle, held);
        // Its count is another kernel's, so it is no result of this one.
        return Object.keys(data).length > 0
          ? [{ output_type: 'display_data', data, metadata: {} }]
          : [];
      }
      default:
        return [];
    }
  });
  return { outputs: copies, held: [...held] };
}
