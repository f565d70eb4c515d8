/** The server's events: which of them are ours, and whether one was missed. */
import { ACTIVITY_SCHEMA_ID } from '../tokens';
import type { IActivityEvent } from '../tokens';

/** The activity event in an emission of the server's bus; null for others. */
export function readActivity(
  emission: Readonly<Record<string, unknown>>
): IActivityEvent | null {
  if (
    emission.schema_id !== ACTIVITY_SCHEMA_ID ||
    typeof emission.serial !== 'number' ||
    typeof emission.session_id !== 'string'
  ) {
    return null;
  }
  return emission as unknown as IActivityEvent;
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
