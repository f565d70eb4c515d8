/** The status bar's item: what waits, and how many agents are at work. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import type { Execute, ILiveModel } from '../tokens';
import { atWorkTitle } from './atworkwording';
import { element, iconElement } from '../ui/elements';
import { activityIcon, statusIcons } from '../ui/icons';
import { waitsText } from '../ui/wording';

/** A button that leads to what waits, or to what runs. */
export class AtWorkItem extends Widget {
  constructor(
    private readonly _live: ILiveModel,
    private readonly _trans: TranslationBundle,
    execute: Execute
  ) {
    super();
    this.addClass('jp-AgentExecAtWork');
    this._button.type = 'button';
    this._button.addEventListener('click', () => {
      const [first] = _live.agents;
      const asks = waitsText(_live, _trans) !== '';
      void (first && !asks
        ? execute(CommandIDs.openSession, {
            session_id: first.session.id,
            execution_id: first.pending[0].id
          })
        : execute(CommandIDs.openPanel));
    });
    this.node.append(this._button);
    _live.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  /** Whether there is something to say. */
  get isActive(): boolean {
    return this._text.textContent !== '';
  }

  private _onChanged(): void {
    const { agents } = this._live;
    const count = agents.length;
    const trans = this._trans;
    const waits = waitsText(this._live, trans);
    const works =
      count > 0 ? trans._n('%1 agent at work', '%1 agents at work', count) : '';
    const isAsked = this._live.asking.length > 0;
    const text = isAsked ? waits : [waits, works].filter(Boolean).join(' · ');
    if (text !== this._text.textContent) {
      this._text.textContent = text;
      const icon = waits ? statusIcons.awaiting_approval : activityIcon;
      this._button.replaceChildren(iconElement(icon), this._text);
      this._button.classList.toggle('jp-mod-asking', waits !== '');
    }
    this._button.title = atWorkTitle(agents, this._live.proposing, trans);
  }

  private readonly _button = element('button', 'jp-AgentExecAtWork-button');
  private readonly _text = element('span', '');
}
