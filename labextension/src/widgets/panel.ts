/** The sidebar panel: sessions above, the chosen one's cells below. */
import { SidePanel } from '@jupyterlab/ui-components';
import { CommandToolbarButton, Toolbar } from '@jupyterlab/ui-components';
import type { ITranslator } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import { AccordionPanel } from '@lumino/widgets';
import type { Widget } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import { activityIcon } from './icons';
import { SessionList } from './sessions';
import { Timeline } from './timeline';

/** The panel's id, under which the layout is restored. */
export const PANEL_ID = 'jp-agent-exec-panel';

/** How the height is shared at first. */
const SHARES = [1, 3];

/** Agent activity; its model is active while the panel can be seen. */
export class ActivityPanel extends SidePanel {
  constructor(private readonly _options: ActivityPanel.IOptions) {
    super({ translator: _options.translator });
    const { model, trans, onError } = _options;
    this.id = PANEL_ID;
    this.addClass('jp-AgentExecPanel');
    this.title.icon = activityIcon;
    this.title.caption = trans.__('Agent activity');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Agent activity'));
    const sessions = new SessionList(model, trans, onError);
    const timeline = new Timeline(_options);
    this._addSection(sessions, [CommandIDs.refresh]);
    this._addSection(timeline, [
      CommandIDs.interrupt,
      CommandIDs.acceptAllOutputs,
      CommandIDs.openNotebook,
      CommandIDs.exportNotebook
    ]);
    if (this.content instanceof AccordionPanel) {
      this.content.setRelativeSizes(SHARES);
    }
  }

  protected override onBeforeShow(msg: Message): void {
    super.onBeforeShow(msg);
    this._options.model.isActive = true;
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._options.model.isActive = false;
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._options.model.isActive = this.isVisible;
  }

  protected override onBeforeDetach(msg: Message): void {
    this._options.model.isActive = false;
    super.onBeforeDetach(msg);
  }

  private _addSection(
    section: Widget & { toolbar?: Toolbar },
    commandIds: string[]
  ): void {
    const { commands } = this._options;
    const toolbar = new Toolbar();
    for (const id of commandIds) {
      toolbar.addItem(
        id,
        new CommandToolbarButton({ commands, id, label: '' })
      );
    }
    section.toolbar = toolbar;
    this.addWidget(section as Toolbar.IWidgetToolbar);
  }
}

/** The options of the panel. */
export namespace ActivityPanel {
  /** What it is made of. */
  export interface IOptions extends Timeline.IOptions {
    commands: CommandRegistry;
    translator: ITranslator;
  }
}
