/** A server of a test's own: it dies, and is started again on its port. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from '@playwright/test';

/** A port that nobody listens on. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

/** A server with a folder, which outlives it. */
export class OwnServer {
  private constructor(
    readonly folder: string,
    private readonly _port: number,
    private readonly _environ: Readonly<Record<string, string>>,
    private readonly _command: string
  ) {}

  /** Where a server can be started, with an empty folder and more variables. */
  static async prepare(
    environ: Readonly<Record<string, string>> = {},
    command = process.env.AGENT_EXEC_UI_JUPYTER_LAB ?? 'jupyter-lab'
  ): Promise<OwnServer> {
    const folder = await mkdtemp(join(tmpdir(), 'agent-exec-own-'));
    return new OwnServer(folder, await freePort(), environ, command);
  }

  get url(): string {
    return `http://127.0.0.1:${this._port}`;
  }

  /** Start it, with more variables, and wait until it answers. */
  async start(environ: Readonly<Record<string, string>> = {}): Promise<void> {
    this._process = spawn(
      this._command,
      ['--config', 'jupyter_server_test_config.py'],
      {
        cwd: dirname(__dirname),
        env: {
          ...process.env,
          AGENT_EXEC_UI_COLLABORATION: 'off',
          AGENT_EXEC_UI_FOLDER: this.folder,
          AGENT_EXEC_UI_PORT: String(this._port),
          ...this._environ,
          ...environ
        },
        stdio: 'ignore'
      }
    );
    await expect
      .poll(
        () =>
          fetch(`${this.url}/api`).then(
            ({ ok }) => ok,
            () => false
          ),
        { timeout: 180_000 }
      )
      .toBe(true);
  }

  /** End it: in order with SIGTERM, all at once with SIGKILL. */
  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const process = this._process;
    this._process = null;
    if (process && process.exitCode === null) {
      const ended = once(process, 'exit');
      process.kill(signal);
      await ended;
    }
  }

  /** End it, and leave nothing of it. */
  async remove(): Promise<void> {
    await this.stop('SIGTERM');
    await rm(this.folder, { recursive: true, force: true });
  }

  private _process: ChildProcess | null = null;
}
