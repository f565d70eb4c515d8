/** Quiet lines between cells: what happened there that is no execution. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IJournalEvent } from '../tokens';
import { element, linkButton } from './elements';
import { eventActor, eventDetail, eventWord } from './eventwording';
import { momentText } from './wording';

/** Lines in a row above which the rest is folded. */
const MOST = 5;

/** One line each, in order; what is beyond a few is folded. */
export class EventLines extends Widget {
  constructor(private readonly _trans: TranslationBundle) {
    super();
    this.addClass('jp-AgentExecEvents');
    this._more = linkButton('', () => {
      this._showAll = true;
      this._draw();
      // The button is gone, and with it where the keyboard was.
      const first = this._list.children[MOST];
      (first as HTMLElement | undefined)?.focus();
    });
    this.node.append(this._list, this._more);
    this.hide();
  }

  /** Show these. */
  setEvents(events: readonly IJournalEvent[]): void {
    if (events !== this._events) {
      this._events = events;
      this.setHidden(events.length === 0);
      this._draw();
    }
  }

  private _draw(): void {
    const count = this._events.length;
    // What is folded should be more than the line that says so.
    const isFolded = !this._showAll && count > MOST + 1;
    const shown = isFolded ? this._events.slice(0, MOST) : this._events;
    this._list.replaceChildren(
      ...shown.map(event => createLine(event, this._trans))
    );
    const more = count - shown.length;
    this._more.hidden = !isFolded;
    this._more.setAttribute('aria-expanded', 'false');
    this._more.textContent = this._trans._n('%1 more', '%1 more', more, more);
  }

  private _events: readonly IJournalEvent[] = [];
  private readonly _list = element('ul', 'jp-AgentExecEvents-list');
  private readonly _more: HTMLButtonElement;
  private _showAll = false;
}

function createLine(
  event: IJournalEvent,
  trans: TranslationBundle
): HTMLElement {
  const line = element('li', 'jp-AgentExecEvents-line');
  line.tabIndex = -1;
  line.dataset.type = event.type;
  const word = element(
    'span',
    'jp-AgentExecEvents-word',
    eventWord(event.type, trans)
  );
  const time = element('time', '', momentText(event.at, Date.now()));
  time.dateTime = event.at;
  time.title = new Date(event.at).toLocaleString();
  line.append(word);
  for (const text of [eventDetail(event, trans), eventActor(event)]) {
    if (text) {
      line.append(' · ', element('bdi', '', text));
    }
  }
  line.append(' · ', time);
  return line;
}
