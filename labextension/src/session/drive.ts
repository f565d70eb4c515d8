/** A drive whose notebooks are the agent sessions of this server; they can only be read. */
import type { Contents, ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { kernelName } from '../tokens';
import type { IAgentExecApi, ISessionModel } from '../tokens';
import { DRIVE } from '../ui/sessionpaths';
import { cellOf, emptyCell } from './cells';

/** Reads sessions as notebooks. `SessionDocument` adds what happens later. */
export class SessionDrive implements Contents.IDrive {
  constructor(private readonly _options: SessionDrive.IOptions) {}

  readonly name = DRIVE;
  readonly fileChanged = new Signal<this, Contents.IChangedArgs>(this);

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  get serverSettings(): ServerConnection.ISettings {
    return this._options.serverSettings;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  async get(
    path: string,
    { content = true }: Contents.IFetchOptions = {}
  ): Promise<Contents.IModel> {
    const { api } = this._options;
    const [id, name] = path.split('/');
    const session = await api.getSession(id);
    return {
      name,
      path,
      type: 'notebook',
      format: 'json',
      mimetype: 'application/x-ipynb+json',
      writable: false,
      created: session.opened_at,
      last_modified: session.last_activity_at,
      content: content
        ? await this._read(id, kernelName(session) ?? null)
        : null
    };
  }

  async getDownloadUrl(path: string): Promise<string> {
    return this._options.api.notebookURL(path.split('/')[0]);
  }

  async listCheckpoints(): Promise<Contents.ICheckpointModel[]> {
    return [];
  }

  readonly newUntitled = () => this._refuse();
  readonly delete = () => this._refuse();
  readonly rename = () => this._refuse();
  readonly save = () => this._refuse();
  readonly copy = () => this._refuse();
  readonly createCheckpoint = () => this._refuse();
  readonly restoreCheckpoint = () => this._refuse();
  readonly deleteCheckpoint = () => this._refuse();

  private async _read(id: string, kernel: string | null): Promise<object> {
    const { isOpening, languageOf, open, trans } = this._options;
    const session = open(id);
    await (isOpening(id) ? session.readFirst() : session.readAll());
    const cells = session.executions.map(cellOf);
    const name = await languageOf(kernel);
    return {
      cells:
        cells.length > 0
          ? cells
          : [
              emptyCell(
                trans.__('No agent has run anything in this session yet')
              )
            ],
      metadata: { language_info: { name } },
      nbformat: 4,
      nbformat_minor: 5
    };
  }

  private async _refuse(): Promise<never> {
    throw new Error(
      this._options.trans.__('An agent session can only be read here.')
    );
  }

  private _isDisposed = false;
}

/** The options of the drive. */
export namespace SessionDrive {
  /** What it is made of. */
  export interface IOptions {
    api: IAgentExecApi;
    /** Whether a document of a session is being opened, which adds what is not read yet. */
    isOpening: (id: string) => boolean;
    /** The language of a kernel, of the default one for null; '' if not known. */
    languageOf: (kernelName: string | null) => Promise<string>;
    /** The model of a session, of which there is one. */
    open: (id: string) => ISessionModel;
    serverSettings: ServerConnection.ISettings;
    trans: TranslationBundle;
  }
}
