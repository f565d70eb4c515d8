/** A notebook panel for tests: a real model, and no view. */
import { NotebookModel } from '@jupyterlab/notebook';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { Contents } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import type { DocumentPanel } from '../tab/document';

// The DOM of the tests has no layout, so nothing is in sight.
document.elementFromPoint ??= () => null;

/** The server's files. */
export class FakeContents {
  get(path: string): Promise<Partial<Contents.IModel>> {
    this.read.push(path);
    return Promise.resolve({ ...this.file });
  }

  driveName(path: string): string {
    return path.includes(':') ? path.split(':')[0] : '';
  }

  localPath(path: string): string {
    return path.split(':').pop() ?? '';
  }

  file: Partial<Contents.IModel> = { hash: '1', last_modified: 't1' };
  read: string[] = [];

  get manager(): Contents.IManager {
    return this as unknown as Contents.IManager;
  }
}

/** What a panel and its views share. */
export class FakeContext {
  constructor(
    public path = 'a.ipynb',
    given: { collaborationEnabled?: boolean } = {}
  ) {
    this.model = new NotebookModel(given);
    this.model.fromJSON({
      cells: ['a', 'b'].map(id => ({
        cell_type: 'code',
        id,
        source: '',
        metadata: {},
        outputs: [],
        execution_count: null
      })),
      metadata: {},
      nbformat: 4,
      nbformat_minor: 5
    });
    this.model.dirty = false;
  }

  /** Save as JupyterLab does, which takes what comes meanwhile for saved. */
  async save(): Promise<void> {
    this.saves++;
    this.saveState.emit('started');
    await this.saving;
    this.model.dirty = false;
    this.saveState.emit('completed');
  }

  revert(): Promise<void> {
    this.reverts++;
    return Promise.resolve();
  }

  get real(): DocumentRegistry.IContext<INotebookModel> {
    return this as unknown as DocumentRegistry.IContext<INotebookModel>;
  }

  readonly model: NotebookModel;
  contentsModel: Partial<Contents.IModel> | null = {
    hash: '1',
    last_modified: 't1',
    writable: true
  };
  isDisposed = false;
  ready = Promise.resolve();
  saving = Promise.resolve();
  saves = 0;
  reverts = 0;
  fileChanged = new Signal<this, void>(this);
  pathChanged = new Signal<this, string>(this);
  saveState = new Signal<this, DocumentRegistry.SaveState>(this);
  sessionContext = {
    session: null as { kernel: { id: string } | null } | null,
    kernelDisplayStatus: 'idle',
    kernelChanged: new Signal<object, void>({}),
    kernelPreferenceChanged: new Signal<object, void>({})
  };
}

/** A view with an active cell. */
export class FakeView {
  constructor(private readonly _context: FakeContext) {}

  get widgets() {
    return Array.from(this._context.model.cells, model => ({
      model,
      isPlaceholder: () => false
    }));
  }

  get activeCell() {
    return this.widgets[this.activeCellIndex] ?? null;
  }

  readonly outerNode = document.createElement('div');
  activeCellIndex = 0;
  mode: 'command' | 'edit' = 'command';
}

/** A panel of a context. */
export class FakePanel {
  constructor(readonly context: FakeContext) {
    this.content = new FakeView(context);
  }

  use(type = 'keydown'): void {
    this.node.dispatchEvent(new Event(type));
  }

  close(): void {
    this.disposed.emit();
  }

  get real(): DocumentPanel {
    return this as unknown as DocumentPanel;
  }

  readonly content: FakeView;
  readonly disposed = new Signal<this, void>(this);
  readonly node = document.createElement('div');
}
