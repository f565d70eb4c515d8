/** Server-sent events: the format, and nothing of what they mean. */

/** One event of a stream. */
export interface IServerSentEvent {
  event: string;
  data: string;
  /** The last id that the stream gave, possibly with an earlier event. */
  id: string;
}

/**
 * Turns the text of an event stream, cut anywhere, into its events.
 *
 * Source: WHATWG HTML, *Server-sent events*, parsing an event stream.
 */
export class EventStreamParser {
  /** Seconds the server asks to wait before a reconnect; null if it did not. */
  get retrySeconds(): number | null {
    return this._retrySeconds;
  }

  /** Take the next piece of text and give the events that it completes. */
  push(text: string): IServerSentEvent[] {
    const events: IServerSentEvent[] = [];
    let buffer = this._buffer + text;
    if (!this._started && buffer.length > 0) {
      this._started = true;
      buffer = buffer.replace(/^\uFEFF/, '');
    }
    // A carriage return at the end may be the first half of a line end.
    const lines = buffer.split(/\r\n|\n|\r(?!$)/);
    this._buffer = lines.pop() ?? '';
    for (const line of lines) {
      const event = this._takeLine(line);
      if (event) {
        events.push(event);
      }
    }
    return events;
  }

  private _takeLine(line: string): IServerSentEvent | null {
    if (line === '') {
      return this._dispatch();
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    switch (field) {
      case 'event':
        this._event = value;
        break;
      case 'data':
        this._data.push(value);
        break;
      case 'id':
        if (!value.includes('\0')) {
          this._id = value;
        }
        break;
      case 'retry':
        if (/^\d+$/.test(value)) {
          this._retrySeconds = Number(value) / 1000;
        }
        break;
      default:
        // A comment, or a field that this format may get later.
        break;
    }
    return null;
  }

  private _dispatch(): IServerSentEvent | null {
    const data = this._data;
    const event = this._event || 'message';
    this._data = [];
    this._event = '';
    return data.length ? { event, data: data.join('\n'), id: this._id } : null;
  }

  private _buffer = '';
  private _started = false;
  private _event = '';
  private _data: string[] = [];
  private _id = '';
  private _retrySeconds: number | null = null;
}
