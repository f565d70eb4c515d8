import { EventStreamParser } from '../../api/sse';

function parse(...pieces: string[]) {
  const parser = new EventStreamParser();
  return pieces.flatMap(piece => parser.push(piece));
}

describe('EventStreamParser', () => {
  it('gives an event with its type, data and id', () => {
    expect(parse('event: output\nid: 7\ndata: {"a": 1}\n\n')).toEqual([
      { event: 'output', data: '{"a": 1}', id: '7' }
    ]);
  });

  it('gives the same events wherever the text is cut', () => {
    const text = '\uFEFFid: 1\r\ndata: a\r\ndata: b\r\n\r\n: hi\rdata:c\r\r';
    const whole = parse(text + '\n');
    expect(whole).toEqual([
      { event: 'message', data: 'a\nb', id: '1' },
      { event: 'message', data: 'c', id: '1' }
    ]);
    for (let at = 0; at <= text.length; at++) {
      expect(parse(text.slice(0, at), text.slice(at), '\n')).toEqual(whole);
    }
  });

  it('gives nothing for an event without data, and forgets its type', () => {
    expect(parse('event: output\n\ndata: x\n\n')).toEqual([
      { event: 'message', data: 'x', id: '' }
    ]);
  });

  it('takes only the first space off a value', () => {
    expect(parse('data:  two\n\n')[0].data).toBe(' two');
  });

  it('takes a field without a colon as an empty value', () => {
    expect(parse('data\n\n')[0].data).toBe('');
  });

  it('ignores an id with NUL and fields it does not know', () => {
    expect(parse('id: 1\nid: a\0b\nfuture: x\ndata: d\n\n')[0].id).toBe('1');
  });

  it('keeps the time to wait before a reconnect, if it is a number', () => {
    const parser = new EventStreamParser();
    parser.push('retry: soon\n');
    expect(parser.retrySeconds).toBeNull();
    parser.push('retry: 250\n');
    expect(parser.retrySeconds).toBe(0.25);
  });

  it('gives nothing for an event that is not complete', () => {
    expect(parse('data: x\n')).toEqual([]);
  });
});
