/** Which agents work in a notebook, and what they do now. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import { checkIcon, ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import * as React from 'react';
import { CommandIDs } from '../tokens';
import type { IAgentAtWork, ILiveModel } from '../tokens';
import { stopText } from './atworkwording';
import type { Clock } from '../ui/clock';
import { grantOf, grantText } from '../access/grant';
import { activityIcon, statusIcons } from '../ui/icons';
import type { MenuItem, OpenMenu } from '../ui/menu';
import { doingText, recordPeopleText } from '../ui/notebookwording';
import { nameOf, userText, whoText } from '../ui/wording';

/** The item's name; the settings place it among the others. */
export const ITEM = 'agent-exec:status';

/** A button for a notebook's toolbar; it takes no room while there is no agent. */
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

  protected render(): JSX.Element | null {
    const { trans } = this._options;
    const shown =
      this._here.find(({ current }) => current !== null) ?? this._here[0];
    if (!shown) {
      return null;
    }
    const { current, session } = shown;
    const name =
      current || this._here.length === 1
        ? nameOf(session.agent)
        : trans.__('%1 agents', this._here.length);
    const doing = doingText(shown, trans);
    const runs = current?.status === 'running';
    const Icon = runs ? statusIcons.running : activityIcon;
    return (
      <button
        type="button"
        className="jp-AgentExecStatus-main"
        data-state={current?.status ?? 'idle'}
        title={this._describe()}
        aria-label={trans.__('Agent %1: %2', name, doing)}
        aria-haspopup="menu"
        onClick={({ currentTarget }) =>
          this._options.openMenu(
            this._here.flatMap(each => this._menuItems(each)),
            currentTarget
          )
        }
      >
        <Icon.react tag="span" className="jp-AgentExec-icon" />
        {this._here.some(each => this._grantOf(each)) && (
          <checkIcon.react tag="span" className="jp-AgentExec-icon" />
        )}
      </button>
    );
  }

  /** The agents here, as they are now. */
  private _onChanged(): void {
    const { live, panel } = this._options;
    const kernel = panel.sessionContext.session?.kernel;
    this._here = live.at(panel.context.localPath, kernel?.id ?? null);
    if (this.isHidden !== (this._here.length === 0)) {
      this.setHidden(this._here.length === 0);
      this._tellToolbar();
    }
    this.update();
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

  private _grantOf({ session }: IAgentAtWork) {
    return grantOf(session, this._options.clock.now());
  }

  private _describe(): string {
    const { clock, trans } = this._options;
    const lines = this._here.flatMap(each => {
      const { session } = each;
      const grant = this._grantOf(each);
      return [
        trans.__(
          'Agent %1, on behalf of %2: %3',
          whoText(session, trans),
          userText(session.username, trans),
          doingText(each, trans)
        ),
        grant ? grantText(grant, clock.now(), trans) : '',
        recordPeopleText(session.record_people, trans)
      ];
    });
    return Array.from(new Set(lines)).filter(Boolean).join('\n');
  }

  /** What can be done about an agent, which it names. */
  private _menuItems(each: IAgentAtWork): MenuItem[] {
    const { trans } = this._options;
    const { current, session } = each;
    const name = nameOf(session.agent);
    const item = (command: string, label: string): MenuItem => ({
      command,
      args: {
        session_id: session.id,
        ...(current && { execution_id: current.id }),
        label
      }
    });
    return [
      item(CommandIDs.openPanel, trans.__('Show What %1 Does', name)),
      ...(current
        ? [item(CommandIDs.interrupt, stopText(session.agent, current, trans))]
        : []),
      ...(this._grantOf(each)
        ? [item(CommandIDs.withdrawGrant, trans.__('Let %1 Ask Again', name))]
        : [])
    ];
  }

  private _here: readonly IAgentAtWork[] = [];
}

/** The options of an item. */
export namespace AgentStatus {
  /** What it is made of. */
  export interface IOptions {
    clock: Clock;
    live: ILiveModel;
    trans: TranslationBundle;
    openMenu: OpenMenu;
    /** The notebook in whose toolbar it stands. */
    panel: NotebookPanel;
  }
}
