/** Quiet lines between cells: what happened there that is no execution. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IAgent, IJournalEvent } from '../tokens';
import { element, linkButton } from './elements';
import { eventActor, eventDetail, eventWord, momentText } from './wording';

/** Lines in a row above which the rest is folded. */
const MOST = 5;

/** One line each, in order; what is beyond a few is folded. */
export class EventLines extends Widget {
  /**
   * @param _agent - The agent whose session it is; null while it is unknown.
   * @param _trans - Translates what is said.
   */
  constructor(
    private readonly _agent: () => IAgent | null,
    private readonly _trans: TranslationBundle
  ) {
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
      this.setHidden(this._told.length === 0);
      this._draw();
    }
  }

  private _draw(): void {
    const events = this._told;
    const count = events.length;
    // What is folded should be more than the line that says so.
    const isFolded = !this._showAll && count > MOST + 1;
    const shown = isFolded ? events.slice(0, MOST) : events;
    this._list.replaceChildren(
      ...shown.map(event => createLine(event, this._agent(), this._trans))
    );
    const more = count - shown.length;
    this._more.hidden = !isFolded;
    this._more.setAttribute('aria-expanded', 'false');
    this._more.textContent = this._trans._n('%1 more', '%1 more', more, more);
  }

  /** Those that have a line; the end stands below the last cell. */
  private get _told(): readonly IJournalEvent[] {
    return this._events.filter(({ type }) => eventWord(type, this._trans));
  }

  private _events: readonly IJournalEvent[] = [];
  private readonly _list = element('ul', 'jp-AgentExecEvents-list');
  private readonly _more: HTMLButtonElement;
  private _showAll = false;
}

function createLine(
  event: IJournalEvent,
  agent: IAgent | null,
  trans: TranslationBundle
): HTMLElement {
  const line = element('li', 'jp-AgentExecEvents-line');
  line.tabIndex = -1;
  line.dataset.type = event.type;
  const word = element(
    'span',
    'jp-AgentExecEvents-word',
    eventWord(event.type, trans) ?? ''
  );
  const time = element('time', '', momentText(event.at, Date.now()));
  time.dateTime = event.at;
  time.title = new Date(event.at).toLocaleString();
  line.append(word);
  const actor = agent ? eventActor(event, agent, trans) : '';
  for (const text of [eventDetail(event, trans), actor]) {
    if (text) {
      line.append(' · ', element('bdi', '', text));
    }
  }
  line.append(' · ', time);
  return line;
}
