/** The server's events: which of them are ours, and whether one was missed. */
import type { ISignal } from '@lumino/signaling';
import { ACTIVITY_SCHEMA_ID } from '../wire';
import type { IActivityEvent } from '../wire';

/** The activity event in an emission of the server's bus; null for others. */
export function readActivity(
  emission: Readonly<Record<string, unknown>>
): IActivityEvent | null {
  const { action, schema_id, serial, session_id } = emission;
  const ours = schema_id === ACTIVITY_SCHEMA_ID && typeof serial === 'number';
  if (!ours) {
    return null;
  }
  const event = emission as unknown as IActivityEvent;
  if (action === 'approvals' || action === 'tokens') {
    return { ...event, session_id: '', length: 0 };
  }
  return typeof session_id === 'string' ? event : null;
}

/** Notices that events are missing between those that arrive. */
export class SerialWatch {
  /**
   * Take an event's serial and tell whether nothing was missed.
   *
   * The first event never counts as complete: what came before it is not
   * known. A number that is not larger comes from a server started anew.
   */
  follows(serial: number): boolean {
    const expected = this._last === null ? null : this._last + 1;
    this._last = serial;
    return serial === expected;
  }

  private _last: number | null = null;
}

/** A signal of the server's events, whichever they are. */
export type Events = ISignal<unknown, Readonly<Record<string, unknown>>>;
