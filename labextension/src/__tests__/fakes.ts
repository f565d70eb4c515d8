/** Values and a server for tests; the server keeps our own interface. */
import { Signal } from '@lumino/signaling';
import { ApiError } from '../api/errors';
import { ACTIVITY_SCHEMA_ID } from '../tokens';
import type {
  IAgentExecApi,
  IAgentSession,
  IExecution,
  IExecutionList,
  IExecutionRange,
  ISessionList,
  ITextRange,
  StreamEvent
} from '../tokens';

/** An execution that has finished well, but for what is given. */
export function execution(given: Partial<IExecution> = {}): IExecution {
  const seq = given.seq ?? 1;
  return {
    id: `x_${seq}`,
    session_id: 's_1',
    seq,
    init: false,
    status: 'ok',
    reason: null,
    source: '1 + 1',
    execution_count: seq,
    cell: { outputs: [] },
    kernel: null,
    agent: { name: 'analyst', version: null, model: null },
    username: 'ada',
    accepted_at: '2026-01-02T03:04:05.000Z',
    started_at: '2026-01-02T03:04:05.000Z',
    finished_at: '2026-01-02T03:04:06.000Z',
    duration: 1,
    outputs_complete: true,
    omitted: { bytes: 0, lines: 0, outputs: 0 },
    interrupt_ignored: false,
    waiting_for: null,
    document: null,
    ...given
  };
}

/** A session that is open and idle, but for what is given. */
export function session(given: Partial<IAgentSession> = {}): IAgentSession {
  return {
    id: 's_1',
    agent: { name: 'analyst', version: null, model: null },
    target: { kind: 'scratch', kernel_name: 'python3' },
    title: 'Sales',
    status: 'open',
    close_reason: null,
    username: 'ada',
    path: null,
    record_people: 'off',
    kernel: {
      id: 'k',
      name: 'python3',
      execution_state: 'idle',
      incarnation: 1
    },
    executions: 0,
    opened_at: '2026-01-02T03:04:05.000Z',
    last_activity_at: '2026-01-02T03:04:05.000Z',
    closed_at: null,
    chain: { head: 'h', length: 1 },
    ...given
  };
}

/** A stdout output. */
export function stdout(text: string) {
  return { output_type: 'stream' as const, name: 'stdout' as const, text };
}

/** A stream that tells what the test feeds it. */
export class FakeStream {
  tell(event: StreamEvent): void {
    this._events.push(event);
    this._wake();
  }

  fail(error: Error): void {
    this._error = error;
    this._wake();
  }

  end(): void {
    this._ended = true;
    this._wake();
  }

  async *events(signal: AbortSignal): AsyncGenerator<StreamEvent> {
    signal.addEventListener('abort', () => this._wake());
    while (!signal.aborted) {
      const event = this._events.shift();
      if (event) {
        yield event;
      } else if (this._error) {
        throw this._error;
      } else if (this._ended) {
        return;
      } else {
        await new Promise<void>(resolve => {
          this._wake = resolve;
        });
      }
    }
    this.aborted = true;
  }

  aborted = false;
  private _ended = false;
  private _error: Error | null = null;
  private _events: StreamEvent[] = [];
  private _wake: () => void = () => undefined;
}

/** A server that answers from memory and notes what it was asked. */
export class FakeServer implements IAgentExecApi {
  readonly clockOffset = 0;
  readonly calls: string[] = [];
  readonly streams = new Map<string, FakeStream>();
  readonly events = new Signal<this, Readonly<Record<string, unknown>>>(this);
  sessions: IAgentSession[] = [];
  executions: IExecution[] = [];
  failure: Error | null = null;

  /** Emit an activity event. */
  emit(serial: number, given: Record<string, unknown> = {}): void {
    this.events.emit({
      schema_id: ACTIVITY_SCHEMA_ID,
      serial,
      action: 'execution',
      session_id: 's_1',
      length: 1,
      ...given
    });
  }

  /** Put an execution in the place of the one with its number. */
  put(...executions: IExecution[]): void {
    for (const each of executions) {
      this.executions = this.executions
        .filter(({ seq }) => seq !== each.seq)
        .concat(each)
        .sort((a, b) => a.seq - b.seq);
    }
  }

  async listSessions(
    after: string | null,
    limit: number,
    status?: IAgentSession['status']
  ): Promise<ISessionList> {
    this._asked(`${status ? `${status} sessions` : 'sessions'} after ${after}`);
    const all = this.sessions.filter(
      each => status === undefined || each.status === status
    );
    const at = all.findIndex(({ id }) => id === after) + 1;
    const sessions = all.slice(at, at + limit);
    const more = at + limit < all.length;
    return {
      sessions,
      next_after: more ? sessions[sessions.length - 1].id : null
    };
  }

  async getSession(id: string): Promise<IAgentSession> {
    this._asked(`session ${id}`);
    const found = this.sessions.find(each => each.id === id);
    return found ?? this._missing(id);
  }

  async listExecutions(
    id: string,
    { after, before, limit }: IExecutionRange
  ): Promise<IExecutionList> {
    this._asked(
      after !== undefined
        ? `${id} after ${after}`
        : `${id} before ${before ?? 'the end'}`
    );
    if (after === undefined) {
      const earlier = this.executions.filter(
        ({ seq }) => seq < (before ?? Infinity)
      );
      return { executions: earlier.slice(-limit), next_after: null };
    }
    const later = this.executions.filter(({ seq }) => seq > after);
    const page = later.slice(0, limit);
    return {
      executions: page,
      next_after: later.length > limit ? page[page.length - 1].seq : null
    };
  }

  async getExecution(id: string): Promise<IExecution> {
    this._asked(`execution ${id}`);
    return this._executionNamed(id);
  }

  async getText(id: string): Promise<ITextRange> {
    return this._missing(id);
  }

  async getNotebook(sessionId: string): Promise<Blob> {
    return this._missing(sessionId);
  }

  async interrupt(sessionId: string): Promise<void> {
    this._asked(`interrupt ${sessionId}`);
  }

  async acceptOutputs(executionId: string): Promise<IExecution> {
    this._asked(`accept ${executionId}`);
    return this._executionNamed(executionId);
  }

  async discardOutputs(executionId: string): Promise<IExecution> {
    this._asked(`discard ${executionId}`);
    return this._executionNamed(executionId);
  }

  async acceptAllOutputs(sessionId: string): Promise<void> {
    this._asked(`accept all of ${sessionId}`);
  }

  follow(id: string, signal: AbortSignal): AsyncIterable<StreamEvent> {
    this._asked(`follow ${id}`);
    const stream = new FakeStream();
    this.streams.set(id, stream);
    return stream.events(signal);
  }

  /** Forget what was asked so far. */
  forget(): void {
    this.calls.length = 0;
  }

  private _asked(what: string): void {
    this.calls.push(what);
    if (this.failure) {
      throw this.failure;
    }
  }

  private _executionNamed(id: string): IExecution {
    const found = this.executions.find(each => each.id === id);
    return found ?? this._missing(id);
  }

  private _missing(id: string): never {
    throw new ApiError('refused', `There is no ${id}.`, 404, 'not_found');
  }
}

/** Let everything that waits for a promise or a timer up to `ms` happen. */
export async function settle(ms = 1000): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms);
}
