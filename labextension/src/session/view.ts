/** What a notebook of a session shows besides its cells. */
import { CommandToolbarButton } from '@jupyterlab/ui-components';
import type { Cell, CodeCell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';
import { createGrant } from '../access/grant';
import { NotebookBadges } from '../badges/badges';
import type { ICellsChange } from '../badges/badges';
import { reviewItems } from '../review/reviewwording';
import { CommandIDs, isProposed } from '../tokens';
import type { IExecution } from '../tokens';
import type { Clock } from '../ui/clock';
import { Details } from '../ui/details';
import { element } from '../ui/elements';
import { nameImages } from '../ui/imagenames';
import { menuButton } from '../ui/menu';
import type { MenuItem, OpenMenu } from '../ui/menu';
import { bringIntoView } from '../ui/view';
import { cellStatus } from '../ui/wording';
import { addDetails } from './celldetails';
import type { ICellOptions } from './celldetails';
import { createEdits } from './edits';
import { createFacts } from './facts';

/** One view of a session's notebook: its facts, its badges, and what asks. */
export class SessionView implements IDisposable {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _options: SessionView.IOptions
  ) {
    const { content } = _panel;
    const { session } = _options;
    content.addClass('jp-AgentExecSessionNotebook');
    this._badges = this._createBadges();
    this._sizing = this._addFacts();
    this._naming = nameImages(content.node, _options.trans);
    this._addTools();
    content.widgets.forEach(each => this._add(each));
    content.model?.cells.changed.connect(this._onCellsChanged, this);
    session.finished.connect(this._onFinished, this);
  }

  get isDisposed(): boolean {
    return this._badges.isDisposed;
  }

  dispose(): void {
    this._badges.dispose();
    this._naming.disconnect();
    this._sizing.disconnect();
    Signal.clearData(this);
  }

  private _createBadges(): NotebookBadges {
    const { session, trans } = this._options;
    const find = (id: string) => session.find(id)?.execution ?? null;
    return new NotebookBadges(this._panel.content, {
      ...this._options,
      live: { changed: session.changed, isReady: true, pending: find },
      reviews: {
        changed: session.changed,
        get: id => find(id)?.review ?? null,
        undoneBy: id => find(id)?.undone_by ?? null,
        look: () => undefined
      },
      menuItems: id => menuItems(session.find(id)!.execution, trans)
    });
  }

  /** Show what is known of the session above the cells, as high as it is. */
  private _addFacts(): ResizeObserver {
    const { clock, execute, session: model, trans } = this._options;
    const panel = new Panel();
    panel.addClass('jp-AgentExecAbout');
    const finished = new Widget({ node: this._finished });
    finished.addClass('jp-AgentExec-visuallyHidden');
    this._finished.setAttribute('role', 'status');
    panel.addWidget(finished);
    const props = { ...this._options, model };
    panel.addWidget(createFacts(props));
    const grant = new Details(model, () => {
      const { session } = model;
      const line = session && createGrant(session, clock.now(), execute, trans);
      return line ? [line] : [];
    });
    panel.addWidget(grant);
    panel.addWidget(createEdits(props));
    const { contentHeader } = this._panel;
    const box = new Panel();
    box.addClass('jp-AgentExecAbout-box');
    box.addWidget(panel);
    contentHeader.addWidget(box);
    const sizing = new ResizeObserver(() => {
      box.node.style.minHeight = `${panel.node.offsetHeight}px`;
      contentHeader.fit();
    });
    sizing.observe(panel.node);
    return sizing;
  }

  /** What can be done about all of it, in place of what a kernel would be for. */
  private _addTools(): void {
    const { commands, openMenu, session, trans } = this._options;
    const args = { session_id: session.id };
    const { toolbar } = this._panel;
    toolbar.addClass('jp-AgentExecSessionToolbar');
    const items = () => [
      ...(session.session?.path
        ? [{ command: CommandIDs.insertMissing, args }]
        : []),
      {
        command: CommandIDs.shareSession,
        args: { ...args, label: trans.__('Export for a Colleague') }
      },
      { command: CommandIDs.reviewAll, args },
      { command: CommandIDs.erase, args }
    ];
    const more = new Widget();
    more.node.append(menuButton(trans.__('More actions'), items, openMenu));
    toolbar.insertItem(0, 'agent-exec:more', more);
    for (const id of [CommandIDs.openNotebook, CommandIDs.interrupt]) {
      const what = { commands, id, args, label: '' };
      toolbar.insertItem(0, id, new CommandToolbarButton(what));
    }
  }

  private _add(cell: Cell): void {
    const model = this._options.session.find(cell.model.id);
    if (!model) {
      return;
    }
    // Of this view only: a copy of the cell can be edited.
    cell.syncEditable = false;
    cell.readOnly = true;
    const mark = () =>
      // Its notebook shows the source.
      void cell.node.toggleAttribute(
        'data-proposed',
        isProposed(model.execution)
      );
    mark();
    model.changed.connect(mark, cell);
    void cell.ready.then(() => {
      if (!cell.isDisposed && !this.isDisposed) {
        addDetails(cell as CodeCell, model, this._options);
      }
    });
  }

  private _onCellsChanged(
    _: unknown,
    { newIndex, newValues, type }: ICellsChange
  ): void {
    if (type !== 'add') {
      return;
    }
    const { content } = this._panel;
    content.widgets
      .slice(newIndex, newIndex + newValues.length)
      .forEach(each => this._add(each));
    // Who is at the last cell goes on with the agent.
    const last = content.widgets.length - 1;
    const isNew = last === newIndex + newValues.length - 1;
    if (isNew && content.activeCellIndex === newIndex - 1) {
      content.activeCellIndex = last;
      void bringIntoView(content, content.widgets[last]);
    }
  }

  private _onFinished(_: unknown, execution: IExecution): void {
    // Those who listen hear it.
    this._finished.textContent = cellStatus(execution, this._options.trans);
  }

  private readonly _badges: NotebookBadges;
  private readonly _finished = element('div', '');
  private readonly _naming: MutationObserver;
  private readonly _sizing: ResizeObserver;
}

/** What can be done about an execution in its session. */
function menuItems(
  { id, review, trial }: IExecution,
  trans: TranslationBundle
): MenuItem[] {
  const args = { execution_id: id };
  return [
    { command: CommandIDs.copySource, args },
    ...(trial ? [{ command: CommandIDs.insertAndRun, args }] : []),
    { command: CommandIDs.insertCells, args },
    { command: CommandIDs.openImage, args: {} },
    null,
    ...reviewItems(id, review, trans)
  ];
}

/** The options of a view. */
export namespace SessionView {
  /** What it is made of. */
  export interface IOptions extends ICellOptions {
    clock: Clock;
    commands: CommandRegistry;
    openMenu: OpenMenu;
  }
}
