/** The WebSocket over which the server reaches the notebooks of this page. */
import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { API_NAMESPACE } from '../wire';
import type { NotebookRequest, INotebookReply, IOpenNotebook } from './changes';

/** Milliseconds before the first new attempt; each further one waits longer. */
const FIRST_DELAY = 500;

/** The longest time between two attempts. */
const LONGEST_DELAY = 60_000;

/**
 * The same while no attempt has ever succeeded: the server has not got the
 * extension, or does not let this person edit.
 */
const LONGEST_UNKNOWN_DELAY = 600_000;

/** What the channel needs of the server's settings. */
export type ChannelSettings = Pick<
  ServerConnection.ISettings,
  'wsUrl' | 'token' | 'appendToken' | 'WebSocket'
>;

/**
 * One WebSocket, opened again whenever it is lost.
 *
 * Nothing waits for it: while there is none, what is sent is dropped, and
 * `opened` tells when it is time to announce all again.
 */
export class Channel {
  constructor(private readonly _settings: ChannelSettings) {}

  /** A socket was opened. */
  get opened(): ISignal<this, void> {
    return this._opened;
  }

  /** The server asks something. */
  get asked(): ISignal<this, NotebookRequest> {
    return this._asked;
  }

  /** Open the socket, and keep it open from now on. */
  connect(): void {
    if (this._socket || this._timer !== null) {
      return;
    }
    const { wsUrl, token, appendToken } = this._settings;
    let url = URLExt.join(wsUrl, API_NAMESPACE, 'notebooks', 'channel');
    if (appendToken && token) {
      url += `?token=${encodeURIComponent(token)}`;
    }
    const socket = new this._settings.WebSocket(url);
    this._socket = socket;
    socket.onopen = () => {
      this._everOpened = true;
      this._attempts = 0;
      this._opened.emit();
    };
    socket.onmessage = ({ data }: MessageEvent<string>) =>
      this._asked.emit(JSON.parse(data) as NotebookRequest);
    socket.onclose = () => this._onClose();
  }

  /** Say which notebooks are open. */
  announce(notebooks: IOpenNotebook[]): void {
    this._send({ op: 'announce', notebooks });
  }

  /** Answer what was asked. */
  answer(id: number, answered: INotebookReply): void {
    this._send({ op: 'answer', id, ...answered });
  }

  private _send(message: object): void {
    if (this._socket?.readyState === this._settings.WebSocket.OPEN) {
      this._socket.send(JSON.stringify(message));
    }
  }

  private _onClose(): void {
    this._socket = null;
    const longest = this._everOpened ? LONGEST_DELAY : LONGEST_UNKNOWN_DELAY;
    const delay = Math.min(longest, FIRST_DELAY * 2 ** this._attempts++);
    // Pages that lost the same server do not all come back at once.
    const spread = delay * (0.75 + Math.random() / 2);
    this._timer = setTimeout(() => {
      this._timer = null;
      this.connect();
    }, spread);
  }

  private _attempts = 0;
  private _everOpened = false;
  private _socket: WebSocket | null = null;
  private _timer: ReturnType<typeof setTimeout> | null = null;
  private _asked = new Signal<this, NotebookRequest>(this);
  private _opened = new Signal<this, void>(this);
}
