/** The sidebar panel: sessions, and the chosen one's cells. */
import {
  CommandToolbarButton,
  SidePanel,
  Toolbar
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { MessageLoop } from '@lumino/messaging';
import type { Message } from '@lumino/messaging';
import { AccordionPanel, Widget } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import type { IApprovalsModel } from '../tokens';
import { activityIcon } from '../ui/icons';
import { menuButton } from '../ui/menu';
import { waitsText } from '../ui/wording';
import { CellsSection } from './cells';
import { FindBar } from './find';
import type { SearchModel } from './search';
import { SessionList } from './sessions';

/** The panel's id, under which the layout is restored. */
export const PANEL_ID = 'jp-agent-exec-panel';

/** The most of the height that the list takes while there is something below it. */
const LIST = 0.4;

/** The same while it shows what a search found, or no session is selected. */
const LONG_LIST = 0.6;

/** The place of the cells. */
const CELLS = 1;

/** Agent activity; its model is active while the panel can be seen. */
export class ActivityPanel extends SidePanel {
  constructor(private readonly _options: ActivityPanel.IOptions) {
    super({ translator: _options.translator });
    const { trans } = _options;
    this.id = PANEL_ID;
    this.addClass('jp-AgentExecPanel');
    this.title.icon = activityIcon;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Agent activity'));
    this._find = new FindBar({
      ..._options,
      onGoOn: () => this._sessions.focusList()
    });
    this._observer = new ResizeObserver(() => this._share());
    const onShow = (sessionId: string, executionId: string) =>
      this.showCells(sessionId, executionId);
    this._sessions = new SessionList({
      ..._options,
      contentRef: node => {
        this._list = node;
        if (node) {
          this._observer.observe(node);
        }
      },
      onShow,
      onLeave: () => this.focusSearch()
    });
    this.header.addWidget(this._find);
    this._addSection(this._sessions, [CommandIDs.refresh]);
    const toolbar = this._addSection(new CellsSection(_options), [
      // Tab stops at the first, or not at all if that is disabled.
      CommandIDs.openSession,
      CommandIDs.openNotebook,
      CommandIDs.interrupt
    ]);
    toolbar.addItem('more', this._createMore());
    this.toolbar.addItem(
      'tokens',
      new CommandToolbarButton({
        commands: _options.commands,
        id: CommandIDs.tokens,
        label: ''
      })
    );
    if (this.content instanceof AccordionPanel) {
      this.content.handleMoved.connect(() => {
        this._isArranged = true;
      });
      this.content.expansionToggled.connect(this._share, this);
    }
    _options.model.selectedChanged.connect(this._share, this);
    const { approvals } = _options.approvals;
    approvals.changed.connect(this._showWaiting, this);
    this._showWaiting(approvals);
  }

  override dispose(): void {
    this._observer.disconnect();
    super.dispose();
  }

  /** Show on the sidebar's icon how much waits. */
  private _showWaiting(approvals: IApprovalsModel): void {
    const { trans } = this._options;
    const name = trans.__('Agent activity');
    const text = waitsText(approvals, trans);
    this.title.caption = text ? `${name}: ${text}` : name;
    // The sidebar knows its tabs by this id.
    const { id } = this;
    const count = String(approvals.asking.length + approvals.proposing.length);
    this.title.dataset = text ? { id, 'agent-exec-asking': count } : { id };
  }

  /** Lead the keyboard to the search box. */
  focusSearch(): void {
    this._find.focusBox();
  }

  /** Show a session's cells, and one of them. */
  showCells(sessionId: string, executionId?: string): void {
    const { model } = this._options;
    if (this.content instanceof AccordionPanel) {
      this.content.expand(CELLS);
    }
    model.select(sessionId);
    if (executionId !== undefined) {
      model.selected?.reveal(executionId);
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
    this._observer.observe(this.content.node);
    this._options.model.isActive = this.isVisible;
  }

  protected override onBeforeDetach(msg: Message): void {
    this._options.model.isActive = false;
    this._observer.unobserve(this.content.node);
    super.onBeforeDetach(msg);
  }

  /**
   * Give the list of sessions the height that it needs, and the cells the rest.
   *
   * Once a person has moved a border, it stays where they put it.
   */
  private _share(): void {
    const { content } = this;
    if (content instanceof AccordionPanel && !this._isArranged) {
      const { model, search } = this._options;
      const [list, cells] = content.widgets.map(each => !each.isHidden);
      const most = search.isSearching || !model.selected ? LONG_LIST : LIST;
      const titles = content.widgets.length * content.titleSpace;
      const room = Math.max(content.node.clientHeight - titles, 1);
      const needed = (this._list?.offsetHeight ?? room) / room;
      const taken = list ? Math.min(needed, cells ? most : 1) : 0;
      content.setRelativeSizes([taken, cells ? 1 - taken : 0]);
    }
    // The sections are laid out anew when what is above them grows.
    MessageLoop.postMessage(content, Widget.ResizeMessage.UnknownSize);
  }

  private _addSection(
    section: Widget & { toolbar?: Toolbar },
    commandIds: string[]
  ): Toolbar {
    const { commands } = this._options;
    const toolbar = new Toolbar();
    for (const id of commandIds) {
      toolbar.addItem(
        id,
        new CommandToolbarButton({
          commands,
          id,
          label: '',
          args: { chosen: true }
        })
      );
    }
    section.toolbar = toolbar;
    this.addWidget(section as Toolbar.IWidgetToolbar);
    return toolbar;
  }

  /** A button for what is decided about all of a session. */
  private _createMore(): Widget {
    const { openMenu, trans } = this._options;
    const label = trans.__('More actions');
    const items = () => [
      { command: CommandIDs.reviewAll, args: {} },
      { command: CommandIDs.erase, args: {} }
    ];
    const item = new Widget();
    item.node.append(menuButton(label, items, openMenu));
    return item;
  }

  private readonly _find: FindBar;
  private _isArranged = false;
  private _list: HTMLElement | null = null;
  private readonly _observer: ResizeObserver;
  private readonly _sessions: SessionList;
}

/** The options of the panel. */
export namespace ActivityPanel {
  /** What it is made of. */
  export interface IOptions extends CellsSection.IOptions {
    search: SearchModel;
    commands: CommandRegistry;
  }
}
