/** A notebook that is open in this page, as agents reach it. */
import type { YNotebook } from '@jupyter/ydoc';
import type { ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookModel, NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import {
  applyChanges,
  ExpectationFailed,
  nameCells,
  readNotebook
} from './apply';
import { METADATA_KEY } from '../api/cellrecord';
import { PersonsRuns } from './personsruns';
import { after, Saves } from './saves';
import { SteadyView } from '../ui/view';
import type {
  NotebookRequest,
  INotebookReply,
  IOpenNotebook
} from '../api/changes';

/** Milliseconds within which a save has to end; a dialog may be in its way. */
const SAVE_TIMEOUT = 4000;

/** Milliseconds for which nobody has typed when a file is read again. */
const IDLE = 1000;

/** How often that is waited for. */
const IDLE_TRIES = 3;

/** Metadata that JupyterLab itself sets when it has a kernel. */
const KERNELS_METADATA = new Set(['kernelspec', 'language_info']);

/** A panel that shows the notebook. */
export type DocumentPanel = Pick<
  NotebookPanel,
  'content' | 'context' | 'disposed' | 'node' | 'sessionContext'
>;

type Apply = Extract<NotebookRequest, { op: 'apply' }>;

function failed(error: unknown): INotebookReply {
  return { status: 'failed', message: String(error) };
}

/**
 * One notebook, shown in one panel or in several views of the same model.
 *
 * It knows whether what is unsaved is the person's or from agents only.
 */
export class OpenDocument implements IDisposable {
  constructor(
    readonly context: DocumentRegistry.IContext<INotebookModel>,
    private readonly _contents: Contents.IManager
  ) {
    const { model } = context;
    this._isDirty = this._hasPersonsEdits = model.dirty;
    context.pathChanged.connect(this._emitChanged, this);
    context.fileChanged.connect(this._emitChanged, this);
    context.saveState.connect(this._onSaveState, this);
    const { kernelChanged, kernelPreferenceChanged } = context.sessionContext;
    kernelChanged.connect(this._emitChanged, this);
    kernelPreferenceChanged.connect(this._emitChanged, this);
    model.stateChanged.connect(this._onStateChanged, this);
    model.metadataChanged.connect(this._onMetadataChanged, this);
    model.contentChanged.connect(this._onContentChanged, this);
    model.cells.changed.connect(this._onCellsChanged, this);
  }

  /** Names this document within the page. */
  readonly id = UUID.uuid4();

  /** What `shown` tells has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** No panel shows it any more. */
  get disposed(): ISignal<this, void> {
    return this._disposed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._saves.forget();
    // One by one would fail here: a disposed model has no list of cells.
    Signal.disconnectReceiver(this);
    for (const panel of [...this._panels.keys()]) {
      this._removePanel(panel);
    }
    this._disposed.emit();
    Signal.clearData(this);
  }

  /** What the server is told of it. */
  shown(): IOpenNotebook {
    const { context, _contents } = this;
    const { path, contentsModel, model, sessionContext } = context;
    return {
      panel: this.id,
      path: _contents.localPath(path),
      collaborative: model.collaborative ?? false,
      dirty: this._isUnsaved,
      only_agents: !this._hasPersonsEdits,
      unused_seconds: this._unused / 1000,
      kernel_starting: sessionContext.kernelDisplayStatus === 'initializing',
      hash: contentsModel?.hash ?? null
    };
  }

  /** Take a panel that shows the notebook. */
  addPanel(panel: DocumentPanel): void {
    this._panels.set(panel, SteadyView.of(panel.content));
    for (const event of ['pointerdown', 'keydown']) {
      panel.node.addEventListener(event, this._onUsed, true);
    }
    panel.disposed.connect(this._removePanel, this);
  }

  /** A person is about to run a cell: from now on its outputs are theirs. */
  onRun(cell: ICellModel): void {
    this._runs.add(cell);
  }

  /**
   * Do what the server asks.
   *
   * What is done at once is answered at once: a promise would let JupyterLab
   * draw the change first, which takes long in a big notebook.
   */
  handle(asked: NotebookRequest): INotebookReply | Promise<INotebookReply> {
    try {
      const answered = this._handle(asked);
      return 'then' in answered ? answered.catch(failed) : answered;
    } catch (error) {
      return failed(error);
    }
  }

  private _handle(
    asked: NotebookRequest
  ): INotebookReply | Promise<INotebookReply> {
    switch (asked.op) {
      case 'read':
        return { status: 'ok', notebook: readNotebook(this.context.model) };
      case 'name':
        nameCells(this.context.model, asked.names);
        return { status: 'ok' };
      case 'apply':
        return this._saves.any
          ? this._applyAfterSaves(asked)
          : this._apply(asked);
      case 'save':
        return this._save();
      case 'reload':
        return this._reload();
    }
  }

  /** Whether there are edits; a kernel's metadata are none. */
  private get _isUnsaved(): boolean {
    return this._hasPersonsEdits || this._hasAgentsEdits;
  }

  private get _isWritable(): boolean {
    const { contentsModel, model } = this.context;
    return !model.readOnly && contentsModel?.writable !== false;
  }

  /** Milliseconds since somebody used one of the panels. */
  private get _unused(): number {
    return performance.now() - this._usedAt;
  }

  /**
   * Make changes, but not while what the file gets is on its way to it.
   *
   * At a notebook's closing, what comes during the save would be lost: it is
   * for the server then to take another way.
   */
  private async _applyAfterSaves(asked: Apply): Promise<INotebookReply> {
    await this._saves.over();
    return this._isDisposed ? { status: 'gone' } : this._apply(asked);
  }

  private _apply({ changes, expected }: Apply): INotebookReply {
    if (!this._isWritable) {
      return { status: 'read_only' };
    }
    const { model } = this.context;
    let change = () => applyChanges(model, changes, expected, this._runs);
    for (const view of this._panels.values()) {
      const within = change;
      change = () => view.hold(within);
    }
    this._isApplying = true;
    try {
      change();
    } catch (error) {
      if (error instanceof ExpectationFailed) {
        return { status: 'moved', message: error.message };
      }
      throw error;
    } finally {
      this._isApplying = false;
    }
    this._changedInSave ||= this._isSaving;
    this._noteAgentsEdits();
    return { status: 'ok' };
  }

  private _noteAgentsEdits(): void {
    if (this._isDirty && !this._hasAgentsEdits) {
      this._hasAgentsEdits = true;
      this._changed.emit();
    }
  }

  /** Save what is from agents; never what a person has not saved. */
  private async _save(): Promise<INotebookReply> {
    const { context } = this;
    if (!this._isUnsaved) {
      return { status: 'ok' };
    }
    if ((await this._hasFileChanged()) || this._hasPersonsEdits) {
      return { status: 'moved', message: 'It is for the person to save.' };
    }
    const saved = context.save().then(() => true);
    if (!(await Promise.race([saved, after(SAVE_TIMEOUT).then(() => false)]))) {
      saved.catch(() => undefined); // JupyterLab has told the person
      return { status: 'failed', message: 'Saving takes too long.' };
    }
    return { status: 'ok' };
  }

  /** Read the file again if it has changed, unless there are unsaved edits. */
  private async _reload(): Promise<INotebookReply> {
    for (let n = 0; this._unused < IDLE && n < IDLE_TRIES; n++) {
      await after(IDLE - this._unused);
    }
    const { context } = this;
    const changed = await this._hasFileChanged();
    // A file takes a moment to read, in which nobody should begin to type.
    if (this._isUnsaved || this._unused < IDLE) {
      return { status: 'moved', message: 'Somebody works in it.' };
    }
    if (changed) {
      await context.revert();
    }
    return { status: 'ok' };
  }

  private async _hasFileChanged(): Promise<boolean> {
    const { path, contentsModel } = this.context;
    const file = await this._contents.get(path, { content: false, hash: true });
    return file.hash && contentsModel?.hash
      ? file.hash !== contentsModel.hash
      : file.last_modified !== contentsModel?.last_modified;
  }

  private _onStateChanged(): void {
    const { dirty } = this.context.model;
    if (dirty === this._isDirty) {
      return;
    }
    this._isDirty = dirty;
    this._hasAgentsEdits &&= dirty;
    this._hasPersonsEdits = dirty && !this._isApplying && !this._isKernels;
    this._changed.emit();
  }

  /** A change of metadata is followed at once by one of content. */
  private _onMetadataChanged(_: unknown, { key }: { key: string }): void {
    this._isKernelsNext = KERNELS_METADATA.has(key);
  }

  private _onContentChanged(): void {
    this._isKernels = this._isKernelsNext;
    this._isKernelsNext = false;
    if (this._isApplying || this._isKernels) {
      return;
    }
    this._editedInSave = true;
    if (this._isDirty && !this._hasPersonsEdits) {
      this._hasPersonsEdits = true;
      this._changed.emit();
    }
  }

  /**
   * An agent's cell that undo brings back shows the state in which it was
   * deleted, and nobody tells it any more that its execution has ended.
   */
  private _onCellsChanged(
    _: unknown,
    { newValues }: { newValues: ICellModel[] }
  ): void {
    const { sharedModel } = this.context.model;
    const { redoing, undoing } = (sharedModel as YNotebook).undoManager;
    for (const cell of undoing || redoing ? newValues : []) {
      if (cell.getMetadata(METADATA_KEY)) {
        (cell as ICodeCellModel).executionState = 'idle';
      }
    }
  }

  private _onSaveState(_: unknown, state: DocumentRegistry.SaveState): void {
    this._isSaving = state === 'started';
    if (this._isSaving) {
      this._saves.begin();
      this._changedInSave = this._editedInSave = false;
      return;
    }
    this._saves.end();
    if (this._changedInSave) {
      // JupyterLab takes all for saved, also what came during the save.
      this._isApplying = !this._editedInSave;
      this.context.model.dirty = true;
      this._isApplying = false;
      this._noteAgentsEdits();
    }
  }

  private _onUsed = (): void => {
    const rested = this._unused > IDLE;
    this._usedAt = performance.now();
    if (rested) {
      this._changed.emit();
    }
  };

  private _removePanel(panel: DocumentPanel): void {
    this._panels.delete(panel);
    for (const event of ['pointerdown', 'keydown']) {
      panel.node.removeEventListener(event, this._onUsed, true);
    }
    panel.disposed.disconnect(this._removePanel, this);
    if (this._panels.size === 0) {
      this.dispose();
    }
  }

  private _emitChanged(): void {
    this._changed.emit();
  }

  private readonly _panels = new Map<DocumentPanel, SteadyView>();
  private readonly _runs = new PersonsRuns();
  private readonly _saves = new Saves();
  private _changedInSave = false;
  private _editedInSave = false;
  private _hasAgentsEdits = false;
  private _hasPersonsEdits: boolean;
  private _isApplying = false;
  private _isDirty: boolean;
  private _isDisposed = false;
  private _isKernels = false;
  private _isKernelsNext = false;
  private _isSaving = false;
  private _usedAt = performance.now();
  private _changed = new Signal<this, void>(this);
  private _disposed = new Signal<this, void>(this);
}
