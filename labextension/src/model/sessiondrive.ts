/** Agent sessions as a drive of notebooks that can only be read. */
import type * as nbformat from '@jupyterlab/nbformat';
import type { Contents, ServerConnection } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { IAgentExecApi } from '../api/client';

/** The drive's name: what stands before the colon of its paths. */
export const DRIVE_NAME = 'AgentExec';

/** What the drive's notebooks are called. */
const NAME = /^(s_\w+)\.ipynb$/;

/**
 * Cells that a document begins with. JupyterLab makes all that a file has at
 * once, which with thousands stops the page for seconds: the others are put in
 * by whoever follows the session.
 */
const FIRST = 50;

/**
 * Matches the names of the drive's notebooks, with the drive; also as they
 * stand in an address, since Jupyter Notebook looks for a viewer by that.
 */
export const DOCUMENT_PATTERN = `^${DRIVE_NAME}(:|%3A)s_\\w+\\.ipynb$`;

/** The path at which a session can be opened as a document. */
export function documentPath(sessionId: string): string {
  return `${DRIVE_NAME}:${sessionId}.ipynb`;
}

/** The session that stands at a path of the drive; null if none can. */
export function sessionAt(localPath: string): string | null {
  return NAME.exec(localPath)?.[1] ?? null;
}

/** Gives the beginning of a session's export when its document is opened. */
export class SessionDrive implements Contents.IDrive {
  /**
   * @param _api - Where the sessions are.
   * @param serverSettings - The server's.
   * @param _refusal - Says that nothing can be changed.
   */
  constructor(
    private readonly _api: IAgentExecApi,
    readonly serverSettings: ServerConnection.ISettings,
    private readonly _refusal: string
  ) {}

  readonly name = DRIVE_NAME;

  /** Never emitted: whoever shows a session follows the session itself. */
  get fileChanged(): ISignal<this, Contents.IChangedArgs> {
    return this._fileChanged;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  async get(
    localPath: string,
    { content = true }: Contents.IFetchOptions = {}
  ): Promise<Contents.IModel> {
    const id = sessionAt(localPath);
    if (id === null) {
      return folder(localPath);
    }
    const [session, file] = await Promise.all([
      this._api.getSession(id),
      content ? this._api.getNotebook(id) : null
    ]);
    return {
      ...folder(localPath),
      type: 'notebook',
      created: session.opened_at,
      last_modified: session.last_activity_at,
      format: file && 'json',
      content: file && beginning(JSON.parse(await file.text()))
    };
  }

  getDownloadUrl(): Promise<string> {
    return this._refuse();
  }

  newUntitled(): Promise<Contents.IModel> {
    return this._refuse();
  }

  delete(): Promise<void> {
    return this._refuse();
  }

  rename(): Promise<Contents.IModel> {
    return this._refuse();
  }

  save(): Promise<Contents.IModel> {
    return this._refuse();
  }

  copy(): Promise<Contents.IModel> {
    return this._refuse();
  }

  createCheckpoint(): Promise<Contents.ICheckpointModel> {
    return this._refuse();
  }

  listCheckpoints(): Promise<Contents.ICheckpointModel[]> {
    return Promise.resolve([]);
  }

  restoreCheckpoint(): Promise<void> {
    return this._refuse();
  }

  deleteCheckpoint(): Promise<void> {
    return this._refuse();
  }

  private _refuse(): Promise<never> {
    return Promise.reject(new Error(this._refusal));
  }

  private _isDisposed = false;
  private readonly _fileChanged = new Signal<this, Contents.IChangedArgs>(this);
}

/** A notebook with its first cells only. */
function beginning(
  notebook: nbformat.INotebookContent
): nbformat.INotebookContent {
  return { ...notebook, cells: notebook.cells.slice(0, FIRST) };
}

/** A folder in which nothing is listed: sessions are found in the panel. */
function folder(localPath: string): Contents.IModel {
  return {
    name: localPath,
    path: localPath,
    type: 'directory',
    created: '',
    last_modified: '',
    writable: false,
    mimetype: '',
    format: 'json',
    content: []
  };
}
