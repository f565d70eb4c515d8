/** The sidebar panel: what asks for a decision, a search box, and the sessions. */
import { CommandToolbarButton, SidePanel } from '@jupyterlab/ui-components';
import type { ITranslator } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import { activityIcon } from '../ui/icons';
import { FindBar } from './find';
import { SessionList } from './sessions';

/** The panel's id, under which the layout is restored. */
export const PANEL_ID = 'jp-agent-exec-panel';

/** Agent activity; its model is active while the panel can be seen. */
export class ActivityPanel extends SidePanel {
  constructor(private readonly _options: ActivityPanel.IOptions) {
    super({ content: new Panel(), translator: _options.translator });
    const { commands, execute, trans } = _options;
    this.id = PANEL_ID;
    this.addClass('jp-AgentExecPanel');
    this.title.icon = activityIcon;
    this.title.caption = trans.__('Agent activity');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Agent activity'));
    const sessions = new SessionList({
      ..._options,
      onShow: (session_id, execution_id) =>
        void execute(CommandIDs.openSession, { session_id, execution_id }),
      onLeave: () => this.find.focusBox()
    });
    this.find = new FindBar({
      ..._options,
      onGoOn: () => sessions.focusList()
    });
    this.addWidget(sessions);
    for (const id of [CommandIDs.refresh, CommandIDs.newToken]) {
      const button = new CommandToolbarButton({ commands, id, label: '' });
      this.toolbar.addItem(id, button);
    }
  }

  /** The search box. */
  readonly find: FindBar;

  protected override onBeforeShow(msg: Message): void {
    super.onBeforeShow(msg);
    this._options.live.isActive = true;
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._options.live.isActive = false;
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._options.live.isActive = this.isVisible;
  }

  protected override onBeforeDetach(msg: Message): void {
    this._options.live.isActive = false;
    super.onBeforeDetach(msg);
  }
}

/** The options of the panel. */
export namespace ActivityPanel {
  /** What it is made of. */
  export interface IOptions extends Omit<
    SessionList.IOptions,
    'onShow' | 'onLeave'
  > {
    commands: CommandRegistry;
    translator: ITranslator;
  }
}
