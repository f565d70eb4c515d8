/** A server that nobody may reach, and notes who does. */
import { createServer } from 'node:net';
import type { Server } from 'node:net';

/** Listens on this machine, and has nothing to say. */
export class Listener {
  private constructor(private readonly _server: Server) {
    _server.on('connection', socket => {
      // It may be all that comes, when a page prepares for more.
      this.heard.push('a connection');
      socket.on('data', data => {
        this.heard.push(String(data).split('\r\n')[0]);
        socket.end('HTTP/1.1 204 No Content\r\n\r\n');
      });
      socket.on('error', () => socket.destroy());
    });
  }

  static async open(): Promise<Listener> {
    const server = createServer();
    await new Promise<void>(resolve =>
      server.listen(0, '127.0.0.1', () => resolve())
    );
    return new Listener(server);
  }

  get address(): string {
    const at = this._server.address();
    return at && typeof at === 'object' ? `127.0.0.1:${at.port}` : '';
  }

  close(): void {
    this._server.close();
  }

  /** The connections, and the first lines of what has come. */
  readonly heard: string[] = [];
}
