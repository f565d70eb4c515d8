import {
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime';
import type { PartialJSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import { untrusted } from '../../ui/untrusted';

const CHART = 'application/vnd.vegalite.v5+json';

class Chart extends Widget implements IRenderMime.IRenderer {
  async renderModel(): Promise<void> {
    this.node.textContent = 'a chart';
  }
}

/** A registry as an application has it, with a chart's renderer. */
function application(parsed: string[] = []): RenderMimeRegistry {
  const registry = new RenderMimeRegistry({
    initialFactories: standardRendererFactories,
    markdownParser: {
      render: async source => {
        parsed.push(source);
        return source;
      }
    }
  });
  registry.addFactory({
    safe: true,
    mimeTypes: [CHART],
    createRenderer: () => new Chart()
  });
  return registry;
}

/** What is shown of an output. */
async function shown(
  data: PartialJSONObject,
  registry = application()
): Promise<HTMLElement> {
  const rendermime = untrusted(registry);
  const mimetype = rendermime.preferredMimeType(data as never)!;
  const renderer = rendermime.createRenderer(mimetype);
  const model = rendermime.createModel({ data: data as never });
  await renderer.renderModel(model);
  const { node } = renderer;
  renderer.dispose();
  return node;
}

describe('untrusted', () => {
  it('draws no chart, which might load what its data name', async () => {
    const node = await shown({ [CHART]: {}, 'text/plain': 'instead' });
    expect(node.textContent).toBe('instead');
    expect(application().preferredMimeType({ [CHART]: {} })).toBe(CHART);
  });

  it('leaves of HTML what loads nothing and stays in its place', async () => {
    const html =
      '<b style="position: fixed" class="jp-Dialog">t</b><img src="http://x">' +
      '<button data-commandlinker-command="x">u</button>';
    const node = await shown({ 'text/html': html });
    expect(node.innerHTML).toBe('<b>t</b>u');
  });

  it.each([
    ['\\frac{a}{b}', true],
    ['\\gdef\\sum{0}', false]
  ])(
    'typesets only a formula that stays by itself: %s',
    async (tex, isDone) => {
      const typeset = jest.fn();
      const registry = application().clone({ latexTypesetter: { typeset } });
      const renderer = untrusted(registry).createRenderer('text/latex');
      Widget.attach(renderer, document.body);
      const model = registry.createModel({ data: { 'text/latex': tex } });
      await renderer.renderModel(model);
      expect(typeset.mock.calls.length > 0).toBe(isDone);
      renderer.dispose();
    }
  );

  it('shows an SVG as an image', async () => {
    const { firstChild } = await shown({ 'image/svg+xml': '<svg/>' });
    expect(firstChild).toHaveProperty(
      'src',
      'data:image/svg+xml;charset=utf-8,%3Csvg%2F%3E'
    );
  });

  it.each(['```mermaid\nx\n```', '- ~~~~ Mermaid\n  x'])(
    'shows a diagram in Markdown as it is written: %s',
    async markdown => {
      const parsed: string[] = [];
      await shown({ 'text/markdown': markdown }, application(parsed));
      expect(parsed).toHaveLength(1);
      expect(parsed[0]).not.toMatch(/mermaid/i);
    }
  );

  it('keeps the colours of text, and escapes the rest', async () => {
    const node = await shown({ 'text/plain': '\u001b[31mred <b>x</b>' });
    expect(node.querySelector('span')?.className).toBe('ansi-red-fg');
    expect(node.textContent).toBe('red <b>x</b>');
    expect(node.querySelector('b')).toBeNull();
  });
});
