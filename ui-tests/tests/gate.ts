/** The network between a page and its server, which can be gone. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** Lets connections through to a server, or none. */
export class Gate {
  private constructor(
    private readonly _server: Server,
    private readonly _to: URL
  ) {
    _server.on('connection', socket => this._onConnection(socket));
  }

  /** A gate to a server. */
  static async to(url: string): Promise<Gate> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Gate(server, new URL(url));
  }

  /** The server's address on this side. */
  get url(): string {
    const { port } = this._server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** Break all connections, and let no new ones through. */
  close(): void {
    this._isOpen = false;
    this._sockets.forEach(socket => socket.destroy());
  }

  /** Let connections through again. */
  open(): void {
    this._isOpen = true;
  }

  /** Listen no more. */
  remove(): void {
    this.close();
    this._server.close();
  }

  private _onConnection(near: Socket): void {
    if (!this._isOpen) {
      near.destroy();
      return;
    }
    const far = connect(Number(this._to.port), this._to.hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near]
    ]) {
      this._sockets.add(socket);
      socket.pipe(other);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        this._sockets.delete(socket);
        other.destroy();
      });
    }
  }

  private _isOpen = true;
  private readonly _sockets = new Set<Socket>();
}
