/** What an agent may put out, or be called, to harm whoever looks at it. */
import { bundle, COVER, payloads } from './attempt';
import type { IPayload } from './attempt';
import { HTML, LATEX, MARKDOWN, SVG } from './markup';
import { python } from './trust';

const JAVASCRIPT: IPayload[] = [
  ['as it is', bundle({ 'application/javascript': 'FIRE' })],
  ['as text', bundle({ 'text/javascript': 'FIRE', 'text/plain': 'x' })],
  [
    'by IPython',
    'from IPython.display import Javascript, display\ndisplay(Javascript("FIRE; fetch(`URL`); new WebSocket(`WS`)", lib=["URL"], css=["URL"]))'
  ]
].map(([what, code]) => ({
  name: `JavaScript ${what}`,
  kind: 'JavaScript',
  code
}));

const vega = (schema: string, spec: object) => ({
  $schema: `https://vega.github.io/schema/${schema}.json`,
  ...spec
});

const DATA: IPayload[] = (
  [
    [
      'Vega-Lite that loads',
      {
        'application/vnd.vegalite.v5+json': vega('vega-lite/v5', {
          data: { url: 'URL' },
          mark: 'point',
          encoding: {}
        }),
        'text/plain': 'x'
      }
    ],
    [
      'Vega-Lite link',
      {
        'application/vnd.vegalite.v6+json': vega('vega-lite/v6', {
          data: { values: [{ a: 1, u: 'URL' }] },
          mark: { type: 'image', width: 90, height: 90 },
          encoding: {
            url: { field: 'u' },
            href: { value: 'javascript:FIRE' },
            tooltip: { value: '<img src=x onerror=FIRE>' }
          }
        })
      }
    ],
    [
      'Vega expression',
      {
        'application/vnd.vega.v5+json': vega('vega/v5', {
          width: 90,
          height: 90,
          data: [{ name: 'd', url: 'URL', format: { type: 'json' } }],
          signals: [
            {
              name: 's',
              update: 'event.constructor.constructor("FIRE")()'
            }
          ],
          marks: [
            { type: 'image', encode: { enter: { url: { value: 'URL' } } } }
          ]
        }),
        'text/plain': 'x'
      }
    ],
    [
      'Plotly',
      {
        'application/vnd.plotly.v1+json': {
          data: [{ x: ['<a href="javascript:FIRE">x</a>'], y: [1] }],
          layout: {
            title: '<a href="javascript:FIRE"><img src=x onerror=FIRE></a>',
            images: [{ source: 'URL' }]
          }
        },
        'text/html': '<div>a plot</div><script>FIRE</script>',
        'text/plain': 'x'
      }
    ],
    [
      'widget',
      {
        'application/vnd.jupyter.widget-view+json': {
          model_id: '../../canary-model',
          version_major: 2,
          version_minor: 0
        },
        'text/plain': 'HTML(value="<img src=x onerror=FIRE>")'
      }
    ],
    [
      'widget alone',
      { 'application/vnd.jupyter.widget-view+json': { model_id: '<b>' } }
    ],
    [
      'GeoJSON',
      {
        'application/geo+json': {
          type: 'FeatureCollection',
          features: [
            {
              type: 'Feature',
              properties: { popup: '<img src=x onerror=FIRE>' },
              geometry: { type: 'Point', coordinates: [0, 0] }
            }
          ]
        },
        'text/plain': 'x'
      },
      { 'application/geo+json': { url_template: 'URL/{z}/{x}/{y}.png' } }
    ],
    [
      'JSON',
      {
        'application/json': {
          ['__proto__']: { polluted: true },
          constructor: { prototype: { polluted: true } },
          '<img src=x onerror=FIRE>': 'URL',
          script: 'javascript:FIRE'
        },
        'text/plain': 'x'
      },
      { 'application/json': { expanded: true } }
    ],
    ['PDF', { 'application/pdf': 'JVBERi0xLjQK', 'text/plain': 'x' }],
    [
      'Mermaid',
      {
        'text/vnd.mermaid':
          'flowchart LR\n  A@{ img: "URL", label: "x", w: 60, h: 60 }\n  click A href "javascript:FIRE"',
        'text/plain': 'x'
      }
    ],
    [
      'Bokeh and HoloViews',
      {
        'application/vnd.bokehjs_exec.v0+json': 'FIRE',
        'application/vnd.holoviews_exec.v0+json': 'FIRE',
        'application/javascript': 'FIRE',
        'text/html': '<div id="b"></div><script>FIRE</script>'
      }
    ],
    ['LaTeX document', { 'text/x-latex': '\\href{URL}', 'text/plain': 'x' }],
    [
      'image that is none',
      { 'image/png': "x' onerror='FIRE", 'text/plain': 'x' }
    ],
    [
      'image of a size',
      {
        'image/png':
          'iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGP4z8AARwzEcQCukw/x0F8jngAAAABJRU5ErkJggg=='
      },
      { 'image/png': { width: 99999, height: 700, unconfined: true } }
    ],
    [
      'isolated HTML',
      { 'text/html': '<script>FIRE</script><img src="URL">' },
      { isolated: true, 'text/html': { isolated: true } }
    ],
    [
      'error as data',
      { 'application/vnd.jupyter.stderr': '<img src=x onerror=FIRE>' }
    ],
    [
      'trust',
      { 'text/html': '<script>FIRE</script>', 'text/plain': 'x' },
      { trusted: true, 'jupyter-agent-exec': { trusted: true } }
    ]
  ] as [string, object, object?][]
).map(([what, data, metadata]) => ({
  name: `data ${what}`,
  kind: 'data',
  code: bundle(data, metadata)
}));

const printed = (text: string) => `print(${python(text)})`;

const TEXT = payloads('text', printed, {
  HTML: '<img src=x onerror="FIRE"><script>FIRE</script>',
  'HTML with colours':
    '\u001b[31m<img src=x onerror="FIRE">\u001b[0m<script>FIRE</script>',
  'terminal link':
    '\u001b]8;;javascript:FIRE\u0007a link\u001b]8;;\u0007 \u001b]8;;URL\u001b\\b\u001b]8;;\u001b\\',
  'colours that break out':
    '\u001b[38;2;"><img src=x onerror=FIRE>m x \u001b[38;5;999;url(URL)m y \u001b[31;</span><script>FIRE</script>m',
  'terminal commands':
    '\u001b[2J\u001b[H\u001b]0;hijacked\u0007\u001b]52;c;eA==\u0007\u001b[?1049h\u001b[6n\u0007\b\b\rx',
  'script address':
    'javascript://x%0aFIRE javascript:FIRE vbscript://x data:text/html,<script>FIRE</script>',
  'script address with colours':
    '\u001b[34mjavascript://%0aFIRE\u001b[0m data:text/html;base64,PHNjcmlwdD4x',
  'long line': 'x'.repeat(20000),
  direction: '\u202e\u2066x\u2069 \u200b\u200f\ufeffend\u202d',
  marks: `${'Z\u0300\u0301\u0302\u0303\u0489'.repeat(300)}\n${'\n'.repeat(50)}`,
  formula: '$\\href{javascript:FIRE}{x}$ \\(\\style{position: fixed}{y}\\)',
  large: `${'large '.repeat(9000)}<script>FIRE</script>`
});

const ERRORS: IPayload[] = [
  [
    'value',
    'raise ValueError("<img src=x onerror=\\"FIRE\\"><script>FIRE</script>")'
  ],
  [
    'name',
    'raise type("<img src=x onerror=FIRE>", (Exception,), {"__module__": "<script>"})("x")'
  ],
  [
    'traceback',
    'from IPython import get_ipython\n' +
      'def hostile(self, kind, value, trace, tb_offset=None):\n' +
      '    return ["\\x1b[31m<img src=x onerror=FIRE>", "javascript://x%0aFIRE \\x1b]8;;javascript:FIRE\\x07a\\x1b]8;;\\x07", "File /canary-file:1"]\n' +
      'class Hostile(Exception):\n    def _render_traceback_(self):\n        return hostile(None, None, None, None)\n' +
      'raise Hostile("x")'
  ],
  [
    'colours',
    'raise ValueError("\\x1b[38;2;\\"><img src=x onerror=FIRE>m\\u202e")'
  ]
].map(([what, code]) => ({ name: `error ${what}`, kind: 'error', code }));

const SOURCES = payloads('source', text => text, {
  HTML: '# <img src=x onerror="FIRE"><script>FIRE</script>\n"x"',
  direction: 'x = "a\u202e \u2066b\u2069" # \u2066 FIRE\nx',
  link: '# javascript://x%0aFIRE URL\n"x"',
  cell: `# </code></pre><div style="${COVER}">covers</div>\n"x"`,
  long: `# ${'x'.repeat(5000)}\n"x"`
});

/** What an agent runs, so that its outputs and its source do harm. */
export const PAYLOADS: readonly IPayload[] = [
  ...HTML,
  ...MARKDOWN,
  ...SVG,
  ...LATEX,
  ...JAVASCRIPT,
  ...DATA,
  ...TEXT,
  ...ERRORS,
  ...SOURCES
];

/** What an agent calls itself, its session, its files and its reasons. */
export const NAMES: Readonly<Record<string, string>> = {
  script: '<script>FIRE</script>',
  image: '<img src=x onerror="FIRE">',
  'image elsewhere': '<img src=URL>',
  attribute: '" onmouseover="FIRE" autofocus onfocus="FIRE" x="',
  'script address': 'javascript:FIRE',
  markdown: '[x](javascript:FIRE) ![y](URL) `z` **b**',
  style: `<div style="${COVER}">x</div>`,
  entity: '&lt;img src=x onerror=FIRE&gt; &#x202e;',
  direction: 'safe\u202e\u2066 tnega \u2069\u200b\u200f',
  control: 'a\u001b[31mb\u0007\u0000c\rd\ne\u2028f'.replace('\u0000', '\u0001'),
  long: 'W'.repeat(200),
  template: '${FIRE} {{constructor.constructor("FIRE")()}} %1 %s',
  'many marks': 'Z\u0300\u0301\u0489'.repeat(50)
};
