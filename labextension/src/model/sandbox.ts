/** A document in which an agent's active output can do no harm. Pure. */
import type * as nbformat from '@jupyterlab/nbformat';
import { joinText } from '../api/outputs';
import type { ILeftOut } from '../wire';

/** What may be loaded: nothing that is not in the document itself. */
const POLICY = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  'img-src data:',
  'font-src data:',
  'media-src data:',
  "form-action 'none'",
  "base-uri 'none'",
  "frame-src 'none'"
].join('; ');

/**
 * What goes before an output is shown: what runs, what holds documents of its
 * own, and what makes a browser connect to a host though nothing is loaded.
 */
const GONE =
  'animate, base, embed, frame, frameset, iframe, link, meta, noscript, object, script, set, template';

/** What a click would lead to. */
const LINKS = ['href', 'xlink:href', 'ping', 'action', 'formaction'];

/** An output that is not shown as it was meant to be. */
export interface IActiveOutput {
  /** Its place among the outputs. */
  index: number;
  mimetype: string;
  /** Whether it is shown in a frame; else its data are, as text. */
  isDrawn: boolean;
  /** The output itself, or its data as JSON; null if it was left out. */
  text: string | null;
}

/** Types that can be drawn without a program. */
const DRAWN = ['text/html', 'image/svg+xml'];

/** Types that are programs, or data for one that is not in the output. */
const PROGRAMS =
  /^((application|text)\/javascript|application\/(geo\+json|vnd\.(plotly|vega|vegalite|bokehjs|holoviews|jupyter\.widget)[\w.+-]*))$/;

/** What of HTML is left out where it is not trusted. */
const ACTIVE_HTML =
  /<(script|style|svg|iframe|canvas|form|button|input|object|embed|link|video|audio)\b|<[^>]+\s(on\w+|style)\s*=/i;

/** Whether a type's data are active; of HTML that was left out, nobody knows. */
function isActive(mimetype: string, data: nbformat.IMimeBundle): boolean {
  return mimetype === 'text/html'
    ? !(mimetype in data) || ACTIVE_HTML.test(joinText(data[mimetype]))
    : DRAWN.includes(mimetype) || PROGRAMS.test(mimetype);
}

/**
 * The outputs that are active, with what of them would be shown.
 *
 * @param leftOut - What the outputs are without.
 */
export function activeOutputs(
  outputs: readonly nbformat.IOutput[],
  leftOut: readonly ILeftOut[]
): IActiveOutput[] {
  return outputs.flatMap((output, index): IActiveOutput[] => {
    const data = (output.data ?? {}) as nbformat.IMimeBundle;
    const left = leftOut.find(each => each.index === index);
    const active = [...Object.keys(data), ...(left?.mimetypes ?? [])].filter(
      each => isActive(each, data)
    );
    const mimetype =
      active.find(each => DRAWN.includes(each)) ?? active[0] ?? null;
    if (mimetype === null) {
      return [];
    }
    const isDrawn = DRAWN.includes(mimetype);
    return [{ index, mimetype, isDrawn, text: outputText(output, mimetype) }];
  });
}

/** What an output has of a type, as text; null if it has none. */
export function outputText(
  output: nbformat.IOutput | undefined,
  mimetype: string
): string | null {
  const data = (output?.data ?? {}) as nbformat.IMimeBundle;
  if (!(mimetype in data)) {
    return null;
  }
  const value = data[mimetype];
  const isText = typeof value === 'string' || Array.isArray(value);
  return isText ? joinText(value) : JSON.stringify(value, null, 2);
}

/** An output without what would run or reach out. */
function still(text: string): string {
  const { body, head } = new DOMParser().parseFromString(text, 'text/html');
  for (const part of [head, body]) {
    part.querySelectorAll(GONE).forEach(each => each.remove());
    for (const element of part.querySelectorAll('*')) {
      const isLink = /^(a|area|form|button|input|animate|set)$/.test(
        element.localName
      );
      LINKS.filter(() => isLink).forEach(name => element.removeAttribute(name));
    }
  }
  return head.innerHTML + body.innerHTML;
}

function escapeAttribute(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/"/g, '&quot;');
}

/** A document under the policy. */
function page(content: string): string {
  return (
    '<!DOCTYPE html><html><head><meta charset="utf-8">' +
    `<meta http-equiv="Content-Security-Policy" content="${POLICY}">` +
    '<meta name="referrer" content="no-referrer">' +
    '<meta http-equiv="x-dns-prefetch-control" content="off">' +
    `</head><body>${content}</body></html>`
  );
}

/**
 * The document of a frame with an empty `sandbox`, in which no script runs.
 *
 * With scripts there is no frame without network: neither `sandbox` nor a
 * policy keeps WebRTC from sending, nor a navigation that is refused from
 * connecting to its host. A policy does not keep a frame from navigating
 * itself either, but that of the document around it does: so the output
 * stands in a frame within a frame.
 */
export function sandboxDocument(text: string, title: string): string {
  const attributes = [
    'sandbox=""',
    'referrerpolicy="no-referrer"',
    'style="display:block;width:100%;height:100vh;border:0"',
    `title="${escapeAttribute(title)}"`,
    `srcdoc="${escapeAttribute(page(still(text)))}"`
  ];
  return page(
    `<style>body{margin:0}</style><iframe ${attributes.join(' ')}></iframe>`
  );
}
