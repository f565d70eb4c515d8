/** Which agents work in a notebook, and what they do now. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import { checkIcon, ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';
import { CommandIDs, isRunning } from '../tokens';
import type { Execute, IAgentAtWork, ILiveModel } from '../tokens';
import { stopText } from './atworkwording';
import type { Clock } from '../ui/clock';
import { grantOf, grantText } from '../access/grant';
import { activityIcon, statusIcons } from '../ui/icons';
import type { MenuItem, OpenMenu } from '../ui/menu';
import {
  attachedText,
  doingText,
  elapsedText,
  recordPeopleText,
  shortText
} from '../ui/notebookwording';
import { quoted, userText, whoText } from '../ui/wording';

/** The item's name; the settings place it among the others. */
export const ITEM = 'agent-exec:status';

/** Pixels of a toolbar below which the item shows no words. */
const NARROW = 700;

/** An item for a notebook's toolbar; it takes no room while there is no agent. */
export class AgentStatus extends ReactWidget {
  constructor(private readonly _options: AgentStatus.IOptions) {
    super();
    this.addClass('jp-AgentExecStatus');
    this.hide();
    const { live, panel } = _options;
    live.changed.connect(this._onChanged, this);
    panel.context.pathChanged.connect(this._onChanged, this);
    panel.sessionContext.kernelChanged.connect(this._onChanged, this);
    this._onChanged();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._options.clock.set(this, false);
      super.dispose();
    }
  }

  /** Show how much time has passed. */
  tick(): void {
    this.update();
  }

  protected render(): JSX.Element | null {
    const { clock, trans } = this._options;
    const working = this._here.filter(({ current }) => current !== null);
    const asking = this._here.find(asks);
    const shown = asking ?? working[0] ?? this._here[0];
    if (!shown) {
      return null;
    }
    const { current, session } = shown;
    const name =
      asking || this._here.length === 1 || working.length === 1
        ? quoted(shortText(session.agent.name))
        : trans.__('%1 agents', this._here.length);
    const doing = doingText(shown, trans);
    const opensMenu = !asking && this._menuItems().length > 1;
    const Icon = current ? statusIcons[current.status] : activityIcon;
    const granted = this._grantText();
    return (
      <>
        <button
          type="button"
          className="jp-AgentExecStatus-main"
          data-state={current?.status ?? 'idle'}
          title={this._describe()}
          aria-label={trans.__('Agent %1: %2', name, doing)}
          aria-haspopup={opensMenu ? 'menu' : undefined}
          onClick={event => this._open(event.currentTarget)}
        >
          <Icon.react tag="span" className="jp-AgentExec-icon" />
          <bdi className="jp-AgentExecStatus-name">{name}</bdi>
          <span className="jp-AgentExecStatus-doing">{doing}</span>
          <span className="jp-AgentExecStatus-elapsed">
            {current?.started_at &&
              elapsedText(current.started_at, clock.now())}
          </span>
        </button>
        {granted && (
          <button
            type="button"
            className="jp-AgentExec-iconButton"
            title={granted}
            aria-label={granted}
            onClick={event => this._withdraw(event.currentTarget)}
          >
            <checkIcon.react tag="span" className="jp-AgentExec-icon" />
          </button>
        )}
      </>
    );
  }

  /** The agents here, as they are now. */
  private _onChanged(): void {
    const { clock, live, panel } = this._options;
    const kernel = panel.sessionContext.session?.kernel;
    this._here = live.at(panel.context.localPath, kernel?.id ?? null);
    clock.set(
      this,
      this._here.some(
        ({ current, session }) =>
          (current && isRunning(current.status)) || session.grant?.until
      )
    );
    if (this.isHidden !== (this._here.length === 0)) {
      this.setHidden(this._here.length === 0);
      this._tellToolbar();
    }
    this.update();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.update();
  }

  /** Show no words in a narrow toolbar, so that it is not folded away. */
  protected override onResize(msg: Widget.ResizeMessage): void {
    super.onResize(msg);
    const { toolbar } = this._options.panel;
    const isNarrow = toolbar.node.clientWidth < NARROW;
    const index = Array.from(toolbar.children()).indexOf(this);
    if (
      isNarrow !== this.hasClass('jp-mod-narrow') &&
      toolbar.isVisible &&
      index >= 0
    ) {
      this.toggleClass('jp-mod-narrow', isNarrow);
      this.parent = null; // a toolbar measures an item once after it was added
      toolbar.insertItem(index, ITEM, this);
    }
  }

  /** Let a toolbar see whether there is room for all items. */
  private _tellToolbar(): void {
    const toolbar = this.parent;
    if (toolbar?.isAttached) {
      const { offsetHeight, offsetWidth } = toolbar.node;
      toolbar.processMessage(
        new Widget.ResizeMessage(offsetWidth, offsetHeight)
      );
    }
  }

  private _describe(): string {
    const { clock, trans } = this._options;
    const agents = this._here.map(each =>
      trans.__(
        'Agent %1, on behalf of %2: %3',
        whoText(each.session, trans),
        userText(each.session.username, trans),
        attachedText(each, clock.now(), trans)
      )
    );
    const recorded = this._here.map(({ session }) =>
      recordPeopleText(session.record_people, trans)
    );
    return [...agents, ...new Set(recorded.filter(Boolean))].join('\n');
  }

  /** Lead to what asks; else offer what can be done about the agents. */
  private _open(button: HTMLElement): void {
    const { execute, openMenu } = this._options;
    const items = this._menuItems();
    const asking = this._here.find(asks)?.current;
    const path = asking?.document?.path;
    if (asking && path) {
      const args = { path, execution_id: asking.id };
      void execute(CommandIDs.goToProposal, args);
    } else if (items.length === 1) {
      void execute(items[0].command, items[0].args);
    } else {
      openMenu(items, button);
    }
  }

  /** The sessions here whose agents run code without asking, one for each grant. */
  private get _granted(): IAgentAtWork[] {
    const now = this._options.clock.now();
    const given = this._here.filter(({ session }) => grantOf(session, now));
    return given.filter(
      each => each === given.find(other => haveSameGrant(each, other))
    );
  }

  /** What the button does that withdraws; empty if there is nothing to withdraw. */
  private _grantText(): string {
    const { clock, trans } = this._options;
    const [only, ...others] = this._granted;
    if (!only?.session.grant) {
      return '';
    }
    const again = trans.__('Let the agent ask again');
    return others.length > 0
      ? again
      : [grantText(only.session.grant, clock.now(), trans), again].join('. ');
  }

  private _withdraw(button: HTMLElement): void {
    const [only, ...others] = this._granted;
    if (only && others.length === 0) {
      const args = { session_id: only.session.id };
      void this._options.execute(CommandIDs.withdrawGrant, args);
    } else {
      this._options.openMenu(this._menuItems(), button);
    }
  }

  /** What can be done about each agent, which it names. */
  private _menuItems(): NonNullable<MenuItem>[] {
    const { trans } = this._options;
    const items: NonNullable<MenuItem>[] = [];
    for (const each of this._here) {
      const name = quoted(shortText(each.session.agent.name));
      const args = {
        session_id: each.session.id,
        ...(each.current && { execution_id: each.current.id })
      };
      items.push({
        command: CommandIDs.openPanel,
        args: { ...args, label: trans.__('Show what %1 does', name) }
      });
      if (each.current) {
        const label = stopText(each.session.agent, each.current.seq, trans);
        items.push({
          command: CommandIDs.interrupt,
          args: { ...args, label }
        });
      }
      if (this._granted.includes(each)) {
        const label = trans.__('Let %1 ask again', name);
        items.push({
          command: CommandIDs.withdrawGrant,
          args: { session_id: each.session.id, label }
        });
      }
    }
    return items;
  }

  private _here: readonly IAgentAtWork[] = [];
}

/** Whether what lets two sessions run is the same. */
function haveSameGrant(one: IAgentAtWork, other: IAgentAtWork): boolean {
  const [first, second] = [one, other].map(({ session }) => session.grant);
  return (
    first?.granted_at === second?.granted_at &&
    one.session.agent.name === other.session.agent.name
  );
}

/** Whether an agent waits for a person's approval. */
function asks({ current }: IAgentAtWork): boolean {
  return current?.status === 'awaiting_approval';
}

/** The options of an item. */
export namespace AgentStatus {
  /** What it is made of. */
  export interface IOptions {
    clock: Clock;
    live: ILiveModel;
    trans: TranslationBundle;
    execute: Execute;
    openMenu: OpenMenu;
    /** The notebook in whose toolbar it stands. */
    panel: NotebookPanel;
  }
}
