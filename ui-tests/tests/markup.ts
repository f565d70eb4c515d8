/** HTML, and what may bring some, that harms whoever looks at it. */
import { COVER, payloads, shown } from './attempt';

export const HTML = payloads('HTML', shown('text/html'), {
  script: '<script>FIRE</script>x',
  'script elsewhere': '<script src="URL"></script>x',
  'image error': '<img src="x" onerror="FIRE">',
  'image elsewhere': '<img src="URL"><img srcset="URL 2x" src="data:,">',
  'picture elsewhere':
    '<picture><source srcset="URL"><img src="data:,"></picture>',
  'SVG load': '<svg onload="FIRE"><image href="URL"/></svg>',
  'SVG animate':
    '<svg><animate onbegin="FIRE" attributeName="x" dur="1s"/><a xlink:href="javascript:FIRE"><text y="9">x</text></a></svg>',
  'script link': '<a href="javascript:FIRE">a link</a>',
  'disguised script link': '<a href=" &#1;java&#10;script:FIRE">a link</a>',
  'data link':
    '<a href="data:text/html,<script>FIRE</script>">a link</a><a href="blob:x">y</a>',
  'click handler':
    '<button onclick="FIRE">a button</button><div onmouseover="FIRE">x</div>',
  form: '<form action="URL"><input name="p"><button>send</button><input type="image" src="URL"></form>',
  'form button':
    '<button formaction="javascript:FIRE">x</button><input type="submit" formaction="URL">',
  'own action':
    '<form action="/canary-logout" method="post"><button>x</button></form><img src="/canary-image">',
  refresh: '<meta http-equiv="refresh" content="0; url=URL">x',
  base: '<base href="URL"><a href="x">relative</a>',
  'style sheet':
    '<link rel="stylesheet" href="URL"><link rel="preload" href="URL" as="fetch"><link rel="dns-prefetch" href="URL">x',
  'style import':
    '<style>@import url(URL); body { background: url(URL) !important }</style>x',
  'style for the page':
    '<style>button, .jp-NotebookPanel-toolbar, .jp-AgentExec { display: none !important } :root { --jp-layout-color1: red !important }</style>x',
  'style that reads':
    '<style>input[value^="a"] { background: url(URL) } @font-face { font-family: f; src: url(URL) } * { font-family: f }</style>x',
  cover: `<div style="${COVER}">covers</div>`,
  'cover by class':
    '<div class="jp-Dialog lm-mod-active" style="z-index: 99999">a dialog</div><div class="lm-Menu" style="top: 0">a menu</div><div class="jp-Spinner">x</div>',
  'cover by margin':
    '<div style="margin: -2000px; padding: 4000px; background: red">x</div><div style="transform: translate(-900px, -900px) scale(99)">y</div>',
  'style that loads':
    '<p style="background-image: url(URL); background: url(URL); list-style-image: url(URL); cursor: url(URL), auto; border-image: url(URL)">x</p>',
  frame: '<iframe src="URL"></iframe>',
  'frame with a document':
    '<iframe srcdoc="<script>top.canaries = [\'HTML frame\']</script><img src=URL>"></iframe>',
  'script frame': '<iframe src="javascript:top.canaries = [1]"></iframe>',
  object:
    '<object data="URL"></object><embed src="URL"><applet code="URL"></applet>',
  'object document':
    '<object data="data:text/html,<script>FIRE</script>"></object>',
  template:
    '<template><img src="x" onerror="FIRE"></template><div><template shadowrootmode="open"><script>FIRE</script><img src="URL"></template></div>',
  noscript: '<noscript><p title="</noscript><img src=x onerror=FIRE>">',
  'math mutation':
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=FIRE&gt;">',
  'annotation mutation':
    '<math><annotation-xml encoding="text/html"><svg><style><img src="x" onerror="FIRE"></style></svg></annotation-xml></math>',
  'comment mutation': '<!--><img src="x" onerror="FIRE">--><p>x',
  'title mutation':
    '<svg></p><title><style><img src="</style><img src=x onerror=FIRE>"></title></svg>',
  'text mutation':
    '<textarea><img title="</textarea><img src=x onerror=FIRE>"></textarea><xmp><p title="</xmp><img src=x onerror=FIRE>"></xmp>',
  'select mutation':
    '<select><option><style></option></select><img src=x onerror=FIRE></style></select>',
  details:
    '<details open ontoggle="FIRE"><summary onclick="FIRE">x</summary><img src="URL"></details>',
  media:
    '<video src="URL" poster="URL" autoplay onerror="FIRE"></video><audio autoplay src="URL"><source src="URL" onerror="FIRE"></audio><video autoplay><source src="URL"><track default src="URL"></video>',
  focus:
    '<input autofocus onfocus="FIRE"><p tabindex="0" autofocus onfocus="FIRE">x</p>',
  marquee: '<marquee onstart="FIRE" width="9">x</marquee>',
  animation:
    '<style>@keyframes k {}</style><p style="animation: k 1s" onanimationstart="FIRE">x</p>',
  popover:
    '<div id="p" popover onbeforetoggle="FIRE">covers</div><button popovertarget="p">x</button><dialog open style="position: fixed">y</dialog>',
  table: '<table background="URL"><tr><td background="URL">x</td></tr></table>',
  'image map':
    '<map name="m"><area href="javascript:FIRE" shape="default"></map><img usemap="#m" src="data:," width="50" height="50">',
  command:
    '<button data-commandlinker-command="apputils:change-theme" data-commandlinker-args=\'{"theme": "JupyterLab Dark"}\'>a command</button><a href="#" data-commandlinker-command="filebrowser:create-new-file">a file</a>',
  clobbering:
    '<form id="jupyterapp" name="jupyterapp"><input name="parentNode" id="attributes"></form><a id="main" name="body">x</a><img name="getElementById">',
  ping: '<a href="#x" ping="URL">x</a>',
  'local link':
    '<a href="/canary-page">x</a><a href="../../canary">y</a><a href="//canary.invalid/">z</a>',
  'slots and imports':
    '<script type="importmap">{}</script><link rel="import" href="URL"><script type="speculationrules">{"prefetch": [{"source": "list", "urls": ["URL"]}]}</script>x',
  formula:
    '$\\href{javascript:FIRE}{x}$ and $\\style{position: fixed; inset: 0; background: url(URL)}{y}$',
  large: `<img src="URL"><script>FIRE</script>${'<p>large</p>'.repeat(9000)}`
});

export const MARKDOWN = payloads('Markdown', shown('text/markdown'), {
  'raw HTML': '**x** <img src="x" onerror="FIRE"><script>FIRE</script>',
  'script link': '[a link](javascript:FIRE) [b]\n\n[b]: javascript:FIRE',
  'disguised link': '[a link](java&#x0A;script:FIRE) <javascript:FIRE>',
  'data link': '[a link](data:text/html;base64,PHNjcmlwdD4x)',
  image: '![x](URL) ![y][z]\n\n[z]: URL',
  'title of an image': '![x](URL "x\\" onerror=\\"FIRE")',
  fence: '```"><img src=x onerror=FIRE>\nx\n```\n\n`<img src=x onerror=FIRE>`',
  diagram:
    '```mermaid\nflowchart LR\n  A@{ img: "URL", label: "x", w: 60, h: 60 }\n  click A href "javascript:FIRE"\n```',
  'diagram in a list':
    '- ~~~~  mermaid\n  %%{init: {"themeCSS": "* { background: url(URL); position: fixed }", "securityLevel": "loose"}}%%\n  flowchart LR\n  A["<img src=x onerror=FIRE>"] --> B["<img src=URL>"]\n  ~~~~',
  heading: '# <a id="main" name="body">x</a> <img src=x onerror=FIRE>',
  cover: `<div style="${COVER}">covers</div>\n\n<div class="jp-Dialog">x</div>`,
  formula: '$$\\href{javascript:FIRE}{x} \\class{jp-Dialog}{y}$$'
});

const svg = (text: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="60" height="40">${text}</svg>`;

export const SVG = payloads('SVG', text => shown('image/svg+xml')(svg(text)), {
  script: '<script>FIRE</script><script href="URL"/>',
  load: '<g onload="FIRE"><set attributeName="x" onbegin="FIRE"/></g>',
  'foreign object':
    '<foreignObject width="60" height="40"><body xmlns="http://www.w3.org/1999/xhtml"><img src="URL" onerror="FIRE"/><iframe src="URL"/></body></foreignObject>',
  image: '<image href="URL" width="9" height="9"/><feImage href="URL"/>',
  use: '<use href="URL#x"/><use xlink:href="data:image/svg+xml,x#y"/>',
  animate:
    '<a><animate attributeName="href" values="javascript:FIRE"/><text y="9">x</text></a>',
  style:
    '<style>@import url(URL); * { fill: url(URL#x) }</style><rect width="60" height="40"/>',
  entity: '</svg><!DOCTYPE x [<!ENTITY e SYSTEM "URL">]><svg>',
  link: '<a href="javascript:FIRE"><rect width="60" height="40"/></a>',
  size: `<rect width="60" height="40" style="${COVER}"/>`
});

export const LATEX = payloads('LaTeX', shown('text/latex'), {
  'script link': '$\\href{javascript:FIRE}{x}$',
  'disguised script link': '$\\href{  JaVa&#10;Script:FIRE}{x}$',
  'data link': '$\\href{data:text/html,<script>FIRE</script>}{x}$',
  image: '$\\includegraphics{URL} \\unicode[url(URL)]{x263A}$',
  style: `$\\style{${COVER}; background: url(URL)}{x}$`,
  class: '$\\class{jp-Dialog lm-mod-active}{x} \\cssId{main}{y}$',
  attribute:
    '$\\data{x=y}{z} \\mmlToken{mi}[onclick="FIRE" style="position: fixed"]{w}$',
  place:
    '$\\rlap{\\hspace{-2000px}\\raise 500px {\\rule{5000px}{5000px}}} \\kern -99em x$',
  loading:
    '$\\require{URL} \\require{html} \\bbox[border: 9px solid; background: url(URL)]{x}$',
  'local link': '$\\href{/canary-page}{x}$',
  HTML: '$x$ <img src=x onerror=FIRE><script>FIRE</script>',
  loop: '$\\def\\x{\\x\\x}\\x$'
});
