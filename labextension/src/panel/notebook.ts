/** The executions of a session, shown by JupyterLab's own notebook widget. */
import type { Cell, CodeCell, ICodeCellModel } from '@jupyterlab/cells';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type * as nbformat from '@jupyterlab/nbformat';
import { NotebookModel, StaticNotebook } from '@jupyterlab/notebook';
import type { Notebook } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { JSONExt } from '@lumino/coreutils';
import type { PartialJSONObject } from '@lumino/coreutils';
import { MessageLoop } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { METADATA_KEY } from '../api/cellrecord';
import { Coalescer } from '../live/coalescer';
import { CellOutputs } from '../live/celloutputs';
import { bringIntoView, SteadyView } from '../ui/view';
import { isProposed, kernelName } from '../tokens';
import type {
  Execute,
  IAgentExecApi,
  IExecutionModel,
  ISessionModel
} from '../tokens';
import type { ApprovalView } from '../approvals/approval';
import { NotebookBadges } from '../badges/badges';
import type { Clock } from '../ui/clock';
import { untrusted } from '../ui/untrusted';
import { nameImages } from '../ui/imagenames';
import type { OpenMenu } from '../ui/menu';
import { cellName } from '../ui/wording';
import { CellActions } from '../session/cellactions';
import { addDetails } from '../session/celldetails';
import { outputsOf, recordOf } from '../session/cells';
import { addLeftOut } from '../session/leftout';

/** Milliseconds between two drawings of outputs that grow. */
const REST = 100;

/** What people scroll with. */
const USES = ['wheel', 'touchmove', 'pointerdown', 'keydown'];

/** Milliseconds within which what somebody does scrolls. */
const USED = 500;

/** Pixels from the end within which it is in sight. */
const NEAR_END = 8;

/**
 * A notebook that can only be read. Its model is its own: nothing in it is
 * saved, trusted, or part of a document of the user's.
 */
export class SessionNotebook extends StaticNotebook {
  constructor(private readonly _options: SessionNotebook.IOptions) {
    const rendermime = untrusted(_options.rendermime);
    addLeftOut(rendermime, {
      ..._options,
      find: id => _options.session.find(id)
    });
    super({
      rendermime,
      contentFactory: new StaticNotebook.ContentFactory({
        editorFactory: _options.editors.factoryService.newInlineEditor
      }),
      mimeTypeService: _options.editors.mimeTypeService,
      editorConfig: {
        ...StaticNotebook.defaultEditorConfig,
        code: {
          ...StaticNotebook.defaultEditorConfig.code,
          lineNumbers: false,
          lineWrap: true
        }
      },
      notebookConfig: {
        ...StaticNotebook.defaultNotebookConfig,
        scrollPastEnd: false,
        windowingMode: 'full'
      },
      translator: _options.translator
    });
    this.addClass('jp-AgentExecSessionNotebook');
    const { node, outerNode } = this;
    // JupyterLab's keys and menus for notebooks are for the one in front.
    node.dataset.lmSuppressShortcuts = 'true';
    node.dataset.jpSuppressContextMenu = 'true';
    const feed = node.querySelector('.jp-WindowedPanel-viewport');
    feed?.setAttribute('role', 'feed');
    feed?.setAttribute('aria-label', _options.trans.__('Cells'));
    node.addEventListener('keydown', event => this._onKeyDown(event));
    node.addEventListener('focusin', event => this._onFocus(event));
    outerNode.addEventListener('scroll', () => this._onScroll());
    for (const use of USES) {
      const note = () => (this._usedAt = performance.now());
      outerNode.addEventListener(use, note, { capture: true, passive: true });
    }
    this._resizing = new ResizeObserver(entries => {
      if (entries.some(({ target }) => target === outerNode)) {
        // A notebook draws as much as its last message of its size has room for.
        MessageLoop.sendMessage(this, Widget.ResizeMessage.UnknownSize);
      }
      this._keepAtEnd();
    });
    [outerNode, ...Array.from(outerNode.children)].forEach(each =>
      this._resizing.observe(each)
    );
    this._naming = nameImages(node, _options.trans);
    this._drawing = new Coalescer(async () => this._draw(), REST);
    this._badges = this._createBadges();
    _options.session.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  /** The cell that has the keyboard, or had it last. */
  get activeCell(): Cell | null {
    return this._activeCell;
  }

  get activeCellChanged(): Signal<this, Cell | null> {
    return this._activeCellChanged;
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._resizing.disconnect();
    this._naming.disconnect();
    this._drawing.dispose();
    this._badges.dispose();
    super.dispose();
    this._cells.dispose();
  }

  /** Bring an execution's cell into view, and give it the keyboard. */
  async reveal(executionId: string): Promise<void> {
    const at = this.widgets.findIndex(({ model }) => model.id === executionId);
    if (at >= 0) {
      await this._goTo(at);
    }
  }

  protected override onCellInserted(index: number, cell: Cell): void {
    super.onCellInserted(index, cell);
    const model = this._options.session.find(cell.model.id);
    if (model) {
      cell.node.setAttribute('role', 'article');
      cell.node.setAttribute('aria-setsize', '-1');
      cell.node.tabIndex = -1;
      this._label(cell);
      void cell.ready.then(() => {
        if (!cell.isDisposed) {
          addDetails(cell as CodeCell, model, this._options);
          // It has got another name while it was drawn, and gets it again.
          const { outputArea } = cell as CodeCell;
          outputArea.outputLengthChanged.connect(() => this._label(cell));
          this._label(cell);
        }
      });
    }
  }

  private _createBadges(): NotebookBadges {
    const { session } = this._options;
    const find = (id: string) => session.find(id)?.execution ?? null;
    return new NotebookBadges(this, {
      ...this._options,
      atWork: { changed: session.changed, isReady: true, pending: find },
      reviews: {
        changed: session.changed,
        get: id => find(id)?.review ?? null,
        look: () => undefined
      },
      createActions: id => new CellActions(session.find(id)!, this._options)
    });
  }

  /** Have a cell for each execution; those that come together are put in at once. */
  private _onChanged(): void {
    const { languageOf, session } = this._options;
    const { executions } = session;
    const { sharedModel } = this._cells;
    const isNew = (at: number) =>
      at < executions.length && !this._shown.has(executions[at]);
    for (let at = 0; at < executions.length; at++) {
      let end = at;
      while (isNew(end)) {
        end++;
      }
      const added = executions.slice(at, end);
      if (added.length > 0) {
        const cells = added.map(each => this._createCell(each));
        const insert = () =>
          sharedModel.transact(() => sharedModel.insertCells(at, cells), false);
        if (this._isAtEnd) {
          insert();
        } else {
          this._view.hold(insert);
        }
        at = end;
      }
    }
    if (this.model === null && executions.length > 0) {
      const name = session.session && kernelName(session.session);
      this._cells.setMetadata('language_info', { name: languageOf(name) });
      // One without cells would get an empty one.
      this.model = this._cells;
    }
    this._keepTabStop();
  }

  private _createCell(model: IExecutionModel): nbformat.ICodeCell {
    const { id, execution_count, source } = model.execution;
    const outputs = outputsOf(model);
    this._shown.set(model, outputs);
    model.changed.connect(this._onExecutionChanged, this);
    return {
      cell_type: 'code',
      id,
      source,
      metadata: {
        [METADATA_KEY]: recordOf(model.execution),
        deletable: false,
        editable: false
      },
      outputs: [...outputs],
      execution_count
    };
  }

  private _cellOf(model: IExecutionModel): ICodeCellModel {
    const at = this._options.session.executions.indexOf(model);
    return this._cells.cells.get(at) as ICodeCellModel;
  }

  private _onExecutionChanged(
    model: IExecutionModel,
    what: 'status' | 'outputs'
  ): void {
    this._changed.add(model);
    if (what === 'status') {
      this._showStatus(model);
    }
    this._drawing.request();
  }

  private _showStatus(model: IExecutionModel): void {
    const { execution } = model;
    const cell = this._cellOf(model);
    const record = recordOf(execution);
    const shown = cell.getMetadata(METADATA_KEY) as PartialJSONObject;
    if (!JSONExt.deepEqual(shown, record)) {
      cell.setMetadata(METADATA_KEY, record);
    }
    cell.executionCount = execution.execution_count;
    if (cell.sharedModel.getSource() !== execution.source) {
      cell.sharedModel.setSource(execution.source);
    }
    const widget = this.widgets.find(each => each.model === cell);
    if (widget) {
      this._label(widget);
    }
  }

  /** Say on a cell's node what it shows, for those who listen and for the style. */
  private _label({ model, node }: Cell): void {
    const execution = this._options.session.find(model.id)?.execution;
    if (execution) {
      const { seq, status } = execution;
      node.setAttribute('aria-label', cellName(execution, this._options.trans));
      node.setAttribute('aria-posinset', String(seq));
      node.setAttribute('aria-busy', String(status === 'running'));
      node.dataset.status = status;
      // Its notebook shows the source.
      node.toggleAttribute('data-proposed', isProposed(execution));
    }
  }

  /** Bring outputs in line with what is known. */
  private _draw(): void {
    const changed = Array.from(this._changed);
    this._changed.clear();
    for (const model of changed) {
      const cell = this._cellOf(model);
      const before = this._shown.get(model) ?? [];
      const outputs = outputsOf(model);
      this._shown.set(model, outputs);
      CellOutputs.of(cell).follow(before, outputs);
      if (model.opened.size > 0) {
        const widget = this.widgets.find(each => each.model === cell);
        (widget as CodeCell).outputsScrolled = true;
      }
    }
  }

  /** Look whether somebody scrolled away from the end, or back to it. */
  private _onScroll(): void {
    const now = performance.now();
    if (now - this._usedAt < USED) {
      const { clientHeight, scrollHeight, scrollTop } = this.outerNode;
      this._usedAt = now; // what they move goes on moving
      this._isAtEnd = scrollHeight - clientHeight - scrollTop <= NEAR_END;
    }
    this._keepAtEnd();
  }

  /** Keep the end in sight while cells get another size. */
  private _keepAtEnd(): void {
    if (this._isAtEnd) {
      this.outerNode.scrollTop = this.outerNode.scrollHeight;
    }
    this._keepTabStop();
  }

  private async _goTo(at: number): Promise<void> {
    const cell = this.widgets[at];
    this._isAtEnd = at === this.widgets.length - 1;
    this._activate(cell);
    const before = document.activeElement;
    await bringIntoView(this, cell);
    const { activeElement, body } = document;
    const isHere =
      activeElement === before ||
      activeElement === body ||
      this.node.closest('.jp-AgentExecPanel')?.contains(activeElement);
    // Somebody may have gone elsewhere meanwhile.
    if (isHere && !cell.isDisposed) {
      cell.node.focus({ preventScroll: true });
    }
  }

  private _onKeyDown(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    const isPageKey = event.key === 'PageDown' || event.key === 'PageUp';
    const last = this.widgets.length - 1;
    // The page keys lead on from what is in a cell too, but for a text.
    const at = this.widgets.findIndex(({ node }) =>
      isPageKey && !target.closest('textarea, .cm-editor')
        ? node.contains(target)
        : node === target
    );
    const next = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      End: last,
      Home: 0,
      PageDown: at + 1,
      PageUp: at - 1
    }[event.key];
    if (
      at >= 0 &&
      next !== undefined &&
      !(event.altKey || event.ctrlKey || event.metaKey)
    ) {
      event.preventDefault();
      event.stopPropagation();
      void this._goTo(Math.min(Math.max(next, 0), last));
    }
  }

  private _onFocus({ target }: FocusEvent): void {
    const cell = this.widgets.find(({ node }) => node === target);
    if (cell) {
      this._activate(cell);
    }
  }

  private _activate(cell: Cell): void {
    if (cell !== this._activeCell) {
      this._activeCell?.removeClass('jp-mod-active');
      this._activeCell = cell;
      cell.addClass('jp-mod-active');
      this._activeCellChanged.emit(cell);
      this._keepTabStop();
    }
  }

  /** One cell is reached with the Tab key: the one last used, or the last drawn. */
  private _keepTabStop(): void {
    const drawn = this.widgets.filter(
      ({ node }) => node.isConnected && node.style.display !== 'none'
    );
    const stop = drawn.includes(this._activeCell!)
      ? this._activeCell
      : drawn[drawn.length - 1];
    drawn.forEach(cell => {
      cell.node.tabIndex = cell === stop ? 0 : -1;
    });
  }

  private _activeCell: Cell | null = null;
  private readonly _activeCellChanged = new Signal<this, Cell | null>(this);
  private readonly _badges: NotebookBadges;
  private readonly _cells = new NotebookModel();
  private readonly _changed = new Set<IExecutionModel>();
  private readonly _drawing: Coalescer;
  private _isAtEnd = true;
  private readonly _naming: MutationObserver;
  private readonly _resizing: ResizeObserver;
  /** The executions that have cells, and their outputs as they are shown. */
  private readonly _shown = new Map<
    IExecutionModel,
    readonly nbformat.IOutput[]
  >();
  /** When somebody last did what may scroll. */
  private _usedAt = -Infinity;
  // It uses what this has, too.
  private readonly _view = new SteadyView(this as unknown as Notebook);
}

/** The options of a session's notebook. */
export namespace SessionNotebook {
  /** What it is made of. */
  export interface IOptions {
    session: ISessionModel;
    api: IAgentExecApi;
    /** What is needed to decide. */
    approvals: ApprovalView.IOptions;
    clock: Clock;
    editors: IEditorServices;
    execute: Execute;
    /** The language of a kernel, of the default one for null; '' if not known. */
    languageOf: (kernelName: string | null) => string;
    openMenu: OpenMenu;
    /** The application's; nothing that runs is rendered with it. */
    rendermime: IRenderMimeRegistry;
    trans: TranslationBundle;
    translator: ITranslator;
    /** Tells a user that something they asked for failed. */
    onError: (error: unknown) => void;
  }
}
