/** An execution's stream: what happens to it, until it finishes. */
import { createParser } from 'eventsource-parser';
import type { EventSourceMessage } from 'eventsource-parser';
import { ApiError, refusal } from './errors';
import type {
  IExecution,
  IOutputChange,
  IStatusChange,
  StreamEvent
} from '../wire';

/** Ask for the stream, from the event after `lastEventId` if that is given. */
export type OpenStream = (
  lastEventId: string | null,
  signal: AbortSignal
) => Promise<Response>;

/** Wait before the next attempt; rejects or resolves early when aborted. */
export type Pause = (seconds: number, signal: AbortSignal) => Promise<void>;

/** Attempts in a row that bring no event before the stream is given up. */
const MAX_ATTEMPTS = 5;

/** Wait until the time is over or the signal aborts. */
export function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const done = () => {
      window.clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = window.setTimeout(done, seconds * 1000);
    signal.addEventListener('abort', done);
  });
}

/** What an event means; null for one of a kind that is not known here. */
export function interpret(event: EventSourceMessage): StreamEvent | null {
  const value = JSON.parse(event.data) as unknown;
  switch (event.event) {
    case 'accepted':
    case 'finished':
      return {
        kind: 'execution',
        execution: value as IExecution,
        finished: event.event === 'finished'
      };
    case 'status':
      return { kind: 'status', change: value as IStatusChange };
    case 'output':
      return { kind: 'output', change: value as IOutputChange };
    default:
      return null;
  }
}

/**
 * Follow a stream to its end, resuming where it broke.
 *
 * It ends after `finished` or when `signal` aborts, and throws the server's
 * refusal, or an `ApiError` after five attempts in a row that brought nothing.
 */
export async function* followStream(
  open: OpenStream,
  signal: AbortSignal,
  wait: Pause = pause
): AsyncGenerator<StreamEvent> {
  let lastEventId: string | null = null;
  let attempts = 0;
  while (!signal.aborted) {
    attempts += 1;
    let asked: number | undefined;
    try {
      const response = await open(lastEventId, signal);
      for await (const event of readEvents(response, retry => {
        asked = retry / 1000;
      })) {
        attempts = 0;
        lastEventId = event.id || lastEventId;
        const meaning = interpret(event);
        if (meaning) {
          yield meaning;
        }
        if (event.event === 'finished') {
          return;
        }
      }
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      if (error instanceof ApiError && error.failure !== 'unreachable') {
        throw error;
      }
    }
    if (attempts >= MAX_ATTEMPTS) {
      throw new ApiError('unreachable', 'The stream broke off.');
    }
    await wait(asked ?? Math.max(1, attempts), signal);
  }
}

/** The events of one response, and in how many milliseconds it asks to come back. */
async function* readEvents(
  response: Response,
  onRetry: (milliseconds: number) => void
): AsyncGenerator<EventSourceMessage> {
  if (!response.ok) {
    throw await refusal(response);
  }
  if (!response.body) {
    return;
  }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const events: EventSourceMessage[] = [];
  const parser = createParser({
    onEvent: event => events.push(event),
    onRetry
  });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      parser.feed(decoder.decode(value, { stream: true }));
      for (const event of events.splice(0)) {
        yield event;
      }
    }
  } finally {
    // Whoever stopped reading wants no more of it; a broken one is gone.
    await reader.cancel().catch(() => undefined);
  }
}
