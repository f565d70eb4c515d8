/** Watches a page that shows what agents wrote, and tells what got loose. */
import type { DocumentWidget } from '@jupyterlab/docregistry';
import type { Locator, Page, Request } from '@playwright/test';
import type { Listener } from './listener';
import { ran } from './trust';

/** Where what an agent put out is shown. */
const OUTPUTS = '.jp-OutputArea-output, .jp-AgentExecSandbox-box';

/** What an output may hold that can be clicked. */
const CLICKABLE =
  'a, button, summary, input, textarea, select, label, img, svg, video, area, mjx-container, li, th, [tabindex], [role]';

/** How many of those are clicked in one place. */
const CLICKS = 6;

/** All that a payload must not do, with the place where it did. */
export class Watch {
  constructor(
    private readonly _page: Page,
    private readonly _listener: Listener,
    baseURL: string
  ) {
    const { origin } = new URL(baseURL);
    const isForeign = (url: string) =>
      /^(https?|wss?|ftp|file|javascript):/.test(url) &&
      (!url.replace(/^ws/, 'http').startsWith(`${origin}/`) ||
        new URL(url).pathname.includes('canary'));
    const note = (what: string, url: string) => {
      if (isForeign(url)) {
        this._tell(`${what} ${url}`);
      }
    };
    _page.on('request', request => {
      if (isForeign(request.url())) {
        this._asked.set(request, this._place);
      }
    });
    // What a frame's policy refuses is told as a request, and never sent; so
    // is what an image may use of its own place only.
    _page.on('requestfailed', request => {
      if (/^(csp|origin)$/.test(request.failure()?.errorText ?? '')) {
        this._asked.delete(request);
      }
    });
    _page.on('websocket', socket => note('connects to', socket.url()));
    _page.on('framenavigated', frame => note('goes to', frame.url()));
    _page.on('dialog', dialog => {
      this._tell(`says ${dialog.message()}`);
      void dialog.dismiss();
    });
    _page.on('download', each => this._tell(`downloads ${each.url()}`));
    _page.context().on('page', other => {
      this._tell(`opens ${other.url()}`);
      void other.close();
    });
  }

  /** What has happened that must not, each with its place. */
  readonly found: string[] = [];

  /** What comes from now on is of this place. */
  at(place: string): void {
    this._place = place;
  }

  /** Remember how the page looks. */
  async begin(): Promise<void> {
    // What would lead the page away is noted, and does not.
    await this._page.route(/canary/, route => route.abort());
    this._looks = await this._page.evaluate(looks);
  }

  /** Click on what an output holds, where it is seen. */
  async click(box: Locator): Promise<void> {
    const of = [OUTPUTS, CLICKABLE] as const;
    const places = await box.evaluate(seen, of, { timeout: 2000 });
    for (const [x, y] of places.slice(0, CLICKS)) {
      await this._page.mouse.click(x, y);
      await this._decline();
    }
  }

  /** Look at the page: what runs, what lies over something, what has changed. */
  async look(): Promise<void> {
    for (const name of await ran(this._page)) {
      this._tell(`runs "${name}"`);
    }
    for (const what of await this._page.evaluate(covered, OUTPUTS)) {
      this._tell(what);
    }
    for (const what of await this._page.evaluate(escaped, OUTPUTS)) {
      this._tell(what);
    }
    const now = await this._page.evaluate(looks);
    for (const [what, value] of Object.entries(now)) {
      if (value !== this._looks[what]) {
        this._tell(`turns ${what} from ${this._looks[what]} to ${value}`);
        this._looks[what] = value;
      }
    }
  }

  /** Look at the page, and at how names of agents and of theirs are shown. */
  async lookAtNames(): Promise<void> {
    await this.look();
    for (const what of await this._page.evaluate(disguised)) {
      this._tell(what);
    }
  }

  /** All that was sent has come, and is told. */
  async end(): Promise<string[]> {
    await this.look();
    const { address, heard } = this._listener;
    // All that was sent before this has come before it.
    await this._page.request.get(`http://${address}/last`);
    heard.splice(heard.lastIndexOf('a connection'), 1);
    const others = heard.filter(line => !line.startsWith('GET /last'));
    for (const [request, place] of this._asked) {
      const reason = request.failure()?.errorText ?? 'no answer';
      this.at(place);
      this._tell(`asks for ${request.url()} (${reason})`);
    }
    this.at('somewhere');
    others.forEach(line => this._tell(`sends ${line}`));
    return this.found;
  }

  /** Do not go where a link would lead. */
  private async _decline(): Promise<void> {
    const cancel = this._page.locator('.jp-Dialog .jp-mod-reject');
    if ((await cancel.count()) > 0) {
      await cancel.click();
      await cancel.waitFor({ state: 'detached' });
    }
  }

  private _tell(what: string): void {
    const already = this.found.some(each => each.endsWith(`: ${what}`));
    if (!already) {
      this.found.push(`${this._place}: ${what}`);
    }
  }

  private readonly _asked = new Map<Request, string>();
  private _looks: Record<string, string> = {};
  private _place = 'at first';
}

/** The middles of outputs and of what can be clicked in them. */
function seen(
  box: Element,
  [outputs, clickable]: readonly [string, string]
): [number, number][] {
  return Array.from(box.querySelectorAll(outputs))
    .flatMap(output => [...output.querySelectorAll(clickable), output])
    .map(node => {
      const { height, left, top, width } = node.getBoundingClientRect();
      const x = left + Math.min(width, 40) / 2;
      const y = top + Math.min(height, 40) / 2;
      const hit = document.elementFromPoint(x, y);
      return hit && node.contains(hit) ? [x, y] : null;
    })
    .filter((place): place is [number, number] => place !== null);
}

/** How the page looks around what agents put out. */
function looks(): Record<string, string> {
  const found: Record<string, string> = { title: title() };
  const of = (name: string, node: Element | null, names: string[]) => {
    const style = node && getComputedStyle(node);
    for (const each of names) {
      found[`${each} of ${name}`] = style?.getPropertyValue(each) ?? '';
    }
  };
  of('the page', document.documentElement, [
    '--jp-layout-color1',
    '--jp-ui-font-color1',
    '--jp-brand-color1'
  ]);
  of('the body', document.body, [
    ...['background-image', 'background-color', 'font-family', 'transform'],
    ...['overflow', 'display', 'position']
  ]);
  of('the menus', document.querySelector('#jp-top-panel'), [
    ...['display', 'position', 'visibility', 'opacity']
  ]);
  const outside = Array.from(
    document.querySelectorAll(
      'base, meta[http-equiv], link[rel=import], object, embed'
    )
  );
  found['foreign elements'] = String(outside.length);
  const polluted = {} as { polluted?: boolean };
  found['all objects'] = String(polluted.polluted ?? false);
  return found;

  /**
   * What JupyterLab calls its page is after the document in front, and some
   * time behind it: any of the names that it may have is as good.
   */
  function title(): string {
    const own = Array.from(window.jupyterapp.shell.widgets('main'))
      .filter(widget => 'context' in widget)
      .map(widget => (widget as DocumentWidget).context.path)
      .map(path => path.slice(path.lastIndexOf('/') + 1))
      .map(name => (name.length > 15 ? `${name.slice(0, 12)}…` : name))
      .map(name => `${name} - JupyterLab`);
    // It counts what is open.
    const now = document.title.replace(/ \(\d+\) - /, ' - ');
    return ['JupyterLab', ...own].includes(now) ? 'its own' : now;
  }
}

/** Buttons of the page that something in an output lies over. */
function covered(outputs: string): string[] {
  const found: string[] = [];
  const all = document.querySelectorAll(
    'button, [role=button], [role=tab], [role=menuitem], [role=option], jp-button'
  );
  for (const button of all) {
    const { height, left, top, width } = button.getBoundingClientRect();
    const hit =
      width > 0 &&
      document.elementFromPoint(left + width / 2, top + height / 2);
    const over = hit && hit.closest(outputs);
    if (
      over &&
      !over.contains(button) &&
      !button.contains(hit) &&
      !isClipped(button, left + width / 2, top + height / 2)
    ) {
      found.push(
        `covers ${button.getAttribute('aria-label') ?? button.textContent}`
      );
    }
  }
  return found;

  function isClipped(node: Element, x: number, y: number): boolean {
    for (let at = node.parentElement; at; at = at.parentElement) {
      const box = at.getBoundingClientRect();
      const isInside =
        x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
      if (!isInside && getComputedStyle(at).overflow !== 'visible') {
        return true;
      }
    }
    return false;
  }
}

/** What an output holds that can do harm, or is seen outside of its place. */
function escaped(outputs: string): string[] {
  const found: string[] = [];
  const bad =
    'script, style, iframe, frame, object, embed, base, meta, link, form, dialog, template, [popover], [data-commandlinker-command]';
  const seen = (node: Element) =>
    found.push(`holds ${node.outerHTML.slice(0, 120)}`);
  for (const output of document.querySelectorAll(outputs)) {
    const { bottom, top } = output.getBoundingClientRect();
    const isFar = bottom < 0 || top > innerHeight;
    if (isFar || output.closest('.jp-AgentExecSandbox-box')) {
      continue;
    }
    // Formulas have a style of JupyterLab's own.
    Array.from(output.querySelectorAll(bad)).forEach(seen);
    for (const node of Array.from(output.querySelectorAll('*')).slice(0, 200)) {
      const isLoose = node
        .getAttributeNames()
        .some(name => name.startsWith('on'));
      if (isLoose) {
        seen(node);
      }
      if (node.id && /^(main|body|jupyterapp|lm-|jp-main)/.test(node.id)) {
        seen(node);
      }
      if (isOutside(node, output)) {
        found.push(`is seen outside: ${node.outerHTML.slice(0, 120)}`);
      }
    }
  }
  return found;

  /** Whether some of a node is seen outside of the output. */
  function isOutside(node: Element, output: Element): boolean {
    const frame = output.getBoundingClientRect();
    let { bottom, left, right, top } = node.getBoundingClientRect();
    let isFixed = getComputedStyle(node).position === 'fixed';
    for (let at = node.parentElement; at; at = at.parentElement) {
      const { contain, overflowX, overflowY, position } = getComputedStyle(at);
      const isContained = /paint|strict|content/.test(contain);
      if (
        isContained ||
        (!isFixed && overflowX !== 'visible' && overflowY !== 'visible')
      ) {
        const box = at.getBoundingClientRect();
        left = Math.max(left, box.left);
        right = Math.min(right, box.right);
        top = Math.max(top, box.top);
        bottom = Math.min(bottom, box.bottom);
      }
      isFixed = !isContained && (isFixed || position === 'fixed');
      if (at === output) {
        break;
      }
    }
    const slack = 2;
    return (
      right > left &&
      bottom > top &&
      (left < frame.left - slack ||
        right > frame.right + slack ||
        top < frame.top - slack ||
        bottom > frame.bottom + slack)
    );
  }
}

/** Names that became elements, hide or turn text, or push buttons away. */
function disguised(): string[] {
  const found: string[] = [];
  const active =
    '[onerror], [onload], [onfocus], [onmouseover], img[src="x"], a[href^="javascript:" i]';
  for (const node of document.querySelectorAll(active)) {
    found.push(`makes ${node.outerHTML.slice(0, 120)}`);
  }
  const hidden =
    /[\u0001-\u0008\u000b-\u001f\u200b\u200e\u200f\u2028\u202a-\u202e\u2066-\u2069\ufeff]/;
  // The page isolates a name by two of these, with none of them inside.
  const isolated = /\u2068([^\u2066-\u2069]*)\u2069/g;
  const tell = (text: string | null, node: Element | null) => {
    const isOurs = node?.closest('[class*="jp-AgentExec"]');
    const isOutput = node?.closest(
      '.jp-OutputArea-output, .jp-Editor, .jp-InputArea-editor'
    );
    const plain = text?.replace(isolated, '$1');
    if (plain && isOurs && !isOutput && hidden.test(plain)) {
      found.push(
        `hides something in ${node?.className || node?.parentElement?.className}: ${JSON.stringify(plain.slice(0, 60))}`
      );
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    tell(walker.currentNode.textContent, walker.currentNode.parentElement);
  }
  for (const node of document.querySelectorAll(
    '[title], [aria-label], [alt]'
  )) {
    for (const name of ['title', 'aria-label', 'alt']) {
      tell(node.getAttribute(name), node);
    }
  }
  const boxes = '.jp-AgentExecPanel, .jp-AgentExecImage';
  for (const box of document.querySelectorAll(boxes)) {
    const frame = box.getBoundingClientRect();
    for (const button of box.querySelectorAll('button, [role=button]')) {
      const { left, right, width } = button.getBoundingClientRect();
      if (
        frame.width > 0 &&
        width > 0 &&
        (right > frame.right + 1 || left < frame.left - 1)
      ) {
        found.push(
          `pushes away ${button.getAttribute('aria-label') ?? button.textContent}`
        );
      }
    }
  }
  return found;
}
