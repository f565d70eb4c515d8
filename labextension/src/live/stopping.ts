/** Waits until what was interrupted has ended, or is known not to. */
import type { IAgentExecApi } from '../api/client';
import { ActivityListener } from '../api/events';
import type { Events } from '../api/events';
import { isFinal } from '../wire';
import type { IActivityEvent, IAgentSession, IExecution } from '../wire';

/** Milliseconds after which is told what is, even if no event has come. */
export const PATIENCE = 15_000;

/** What became of stopping an agent. */
export interface IStopped {
  /** What was stopped, as it is now; null if nothing ran. */
  readonly execution: IExecution | null;
  readonly session: IAgentSession;
}

/**
 * Tell what became of an execution that was interrupted, and of its kernel.
 *
 * The server tells an event when it ends, and one when it goes on after the
 * time that it was given.
 *
 * @param executionId - Null if nothing ran.
 */
export async function whenStopped(
  api: IAgentExecApi,
  events: Events,
  sessionId: string,
  executionId: string | null
): Promise<IStopped> {
  const heard = new Heard(events, sessionId, executionId);
  try {
    for (;;) {
      // Before it is read: what is told meanwhile may be newer.
      const next = heard.next();
      const execution =
        executionId === null ? null : await api.getExecution(executionId);
      const isOver =
        execution === null ||
        isFinal(execution.status) ||
        execution.interrupt_ignored ||
        heard.isTired;
      if (isOver) {
        return { execution, session: await api.getSession(sessionId) };
      }
      await next;
    }
  } finally {
    heard.stop();
  }
}

/** Waits for the next event about an execution, but not for ever. */
class Heard {
  constructor(
    events: Events,
    private readonly _sessionId: string,
    private readonly _executionId: string | null
  ) {
    this._listener = new ActivityListener(events, event =>
      this._onEvent(event)
    );
    this._timer = setTimeout(() => {
      this.isTired = true;
      this._wake();
    }, PATIENCE);
  }

  isTired = false;

  next(): Promise<void> {
    return new Promise(resolve => {
      this._wake = resolve;
    });
  }

  stop(): void {
    clearTimeout(this._timer);
    this._listener.dispose();
  }

  private _onEvent(event: IActivityEvent): void {
    if (
      event.execution_id === this._executionId ||
      (event.action === 'closed' && event.session_id === this._sessionId)
    ) {
      this._wake();
    }
  }

  private readonly _listener: ActivityListener;
  private readonly _timer: ReturnType<typeof setTimeout>;
  private _wake: () => void = () => undefined;
}
