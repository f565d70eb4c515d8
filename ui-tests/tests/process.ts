/** Programs that the tests start. */
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Interface } from 'node:readline';

/** The folder of the whole project. */
export const PROJECT = join(__dirname, '..', '..');

/** A process, and what it prints. */
export class Process {
  constructor(command: string, args: string[], env: NodeJS.ProcessEnv) {
    this._process = spawn(command, args, { cwd: PROJECT, env });
    this._lines = createInterface({ input: this._process.stdout });
    this._lines.on('line', line => {
      this.output += `${line}\n`;
      this._unread.push(line);
    });
    this._lines.on('close', () => (this._ended = true));
    this._process.stderr.on('data', data => (this.errors += String(data)));
  }

  output = '';
  errors = '';

  /** Wait for the next line that was not read yet; the errors if there is none. */
  async line(): Promise<string> {
    if (!this._unread.length && !this._ended) {
      const next = once(this._lines, 'line');
      await Promise.race([next, once(this._lines, 'close')]);
    }
    return this._unread.shift() ?? this.errors;
  }

  /** Wait until it has ended; its exit code. */
  async ended(): Promise<number | null> {
    if (this._process.exitCode === null && this._process.signalCode === null) {
      await once(this._process, 'close');
    }
    return this._process.exitCode;
  }

  type(line: string): void {
    this.write(`${line}\n`);
  }

  write(keys: string): void {
    this._process.stdin.write(keys);
  }

  async stop(): Promise<void> {
    if (this._process.exitCode === null && this._process.signalCode === null) {
      const ended = once(this._process, 'exit');
      this._process.kill('SIGTERM');
      await ended;
    }
  }

  private readonly _process: ChildProcessWithoutNullStreams;
  private readonly _lines: Interface;
  private readonly _unread: string[] = [];
  private _ended = false;
}
