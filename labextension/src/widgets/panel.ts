/** The sidebar panel: sessions, the chosen one's cells, and their images. */
import { SidePanel } from '@jupyterlab/ui-components';
import {
  CommandToolbarButton,
  ellipsesIcon,
  Toolbar
} from '@jupyterlab/ui-components';
import type { ITranslator } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { MessageLoop } from '@lumino/messaging';
import type { Message } from '@lumino/messaging';
import { AccordionPanel, Widget } from '@lumino/widgets';
import type { GalleryModel } from '../model/gallery';
import type { SearchModel } from '../model/search';
import { CommandIDs } from '../tokens';
import { element } from './elements';
import { FindBar } from './findbar';
import { Gallery } from './gallery';
import { activityIcon } from './icons';
import type { MenuItem, OpenMenu } from './menu';
import { SessionList } from './sessions';
import { Timeline } from './timeline';

/** The panel's id, under which the layout is restored. */
export const PANEL_ID = 'jp-agent-exec-panel';

/** How the height is shared at first. */
const SHARES = [1, 3, 2];

/** What can be decided about all cells of a session. */
const SESSION_MENU: readonly MenuItem[] = [
  { command: CommandIDs.acceptAllOutputs, args: {} },
  { command: CommandIDs.discardAllOutputs, args: {} },
  null,
  { command: CommandIDs.discardAllCells, args: {} }
];

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
    this.title.caption = trans.__('Agent activity');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Agent activity'));
    this._find = new FindBar({
      ..._options,
      onGoOn: () => this._sessions.focusList()
    });
    const onShow = (sessionId: string, executionId: string) =>
      this.showCells(sessionId, executionId);
    this._sessions = new SessionList({
      ..._options,
      onShow,
      onLeave: () => this.focusSearch()
    });
    const gallery = new Gallery({ ..._options, onShow });
    gallery.hide();
    this.header.addWidget(this._find);
    const timeline = new Timeline(_options);
    this._addSection(this._sessions, [CommandIDs.refresh]);
    const toolbar = this._addSection(timeline, [
      // Tab stops at the first, or not at all if that is disabled.
      CommandIDs.openDocument,
      CommandIDs.exportNotebook,
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
    this._addSection(gallery, []);
    if (this.content instanceof AccordionPanel) {
      this.content.setRelativeSizes(SHARES);
    }
    // The sections are laid out anew when what is above them grows.
    this._observer = new ResizeObserver(() =>
      MessageLoop.postMessage(this.content, Widget.ResizeMessage.UnknownSize)
    );
  }

  override dispose(): void {
    this._observer.disconnect();
    super.dispose();
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
    this._observer.disconnect();
    super.onBeforeDetach(msg);
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
    const label = trans.__('Accept or discard all of this session');
    const button = element('button', 'jp-AgentExec-iconButton');
    button.type = 'button';
    button.title = label;
    button.setAttribute('aria-label', label);
    button.setAttribute('aria-haspopup', 'menu');
    button.addEventListener('click', () => openMenu(SESSION_MENU, button));
    ellipsesIcon.element({ container: button });
    const item = new Widget();
    item.node.append(button);
    return item;
  }

  private readonly _find: FindBar;
  private readonly _observer: ResizeObserver;
  private readonly _sessions: SessionList;
}

/** The options of the panel. */
export namespace ActivityPanel {
  /** What it is made of. */
  export interface IOptions extends Timeline.IOptions {
    search: SearchModel;
    gallery: GalleryModel;
    commands: CommandRegistry;
    openMenu: OpenMenu;
    translator: ITranslator;
  }
}
