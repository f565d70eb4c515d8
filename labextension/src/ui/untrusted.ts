/** Renders what agents put out, where it is only looked at. */
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Widget } from '@lumino/widgets';
import { inertHTML, isHarmlessTeX } from './inert';

const SVG = 'image/svg+xml';

/** After PNG, which needs no second thought. */
const SVG_RANK = 95;

/**
 * Types whose renderers run, load and cover nothing. Those of charts, maps and
 * diagrams call themselves safe too, and fetch what an output names.
 */
const HARMLESS = new Set([
  'application/json',
  'application/vnd.jupyter.stderr',
  'application/vnd.jupyter.stdout',
  'image/bmp',
  'image/gif',
  'image/jpeg',
  'image/png',
  'image/webp',
  'text/html',
  'text/latex',
  'text/markdown',
  'text/plain'
]);

/** The start of a diagram in Markdown. */
const DIAGRAM = /([`~]{3}[ \t]*)mermaid/gi;

/**
 * A registry that renders only what is harmless, HTML without all that is not,
 * and SVG as an image: inside an `img` it runs nothing and loads nothing.
 */
export function untrusted(
  rendermime: IRenderMimeRegistry
): IRenderMimeRegistry {
  const { latexTypesetter, markdownParser, sanitizer } = rendermime;
  const registry = rendermime.clone({
    sanitizer: {
      // With options it is asked about text with colours, which it escapes.
      sanitize: (dirty, options) =>
        options ? sanitizer.sanitize(dirty, options) : inertHTML(dirty),
      getAutolink: () => sanitizer.getAutolink?.() ?? true
    },
    // What one formula defines holds for all of the page.
    latexTypesetter: latexTypesetter
      ? {
          typeset: node =>
            isHarmlessTeX(node.textContent ?? '')
              ? latexTypesetter.typeset(node)
              : undefined
        }
      : undefined,
    // A diagram is drawn before any of it is sanitised.
    markdownParser: markdownParser
      ? {
          render: source =>
            markdownParser.render(source.replace(DIAGRAM, '$1text'))
        }
      : undefined
  });
  registry.mimeTypes
    .filter(mimetype => !HARMLESS.has(mimetype))
    .forEach(mimetype => registry.removeMimeType(mimetype));
  registry.addFactory(
    { safe: true, mimeTypes: [SVG], createRenderer: () => new SvgRenderer() },
    SVG_RANK
  );
  return registry;
}

/** Shows an SVG as an image. */
class SvgRenderer extends Widget implements IRenderMime.IRenderer {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const image = document.createElement('img');
    const source = encodeURIComponent(String(model.data[SVG]));
    image.src = `data:${SVG};charset=utf-8,${source}`;
    this.node.replaceChildren(image);
  }
}
