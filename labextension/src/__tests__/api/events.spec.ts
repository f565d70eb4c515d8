import { readActivity, SerialWatch } from '../../api/events';
import { ACTIVITY_SCHEMA_ID } from '../../tokens';

describe('readActivity', () => {
  const event = { schema_id: ACTIVITY_SCHEMA_ID, serial: 1, session_id: 's' };

  it('takes our events', () => {
    expect(readActivity(event)).toBe(event);
  });

  it.each(['approvals', 'tokens'])('takes what is about all: %s', action => {
    const { session_id, ...rest } = { ...event, action };
    expect(session_id).toBe('s');
    expect(readActivity(rest)).toMatchObject({ serial: 1, session_id: '' });
  });

  it.each([
    ['other schema', { ...event, schema_id: 'other' }],
    ['no serial', { ...event, serial: undefined }],
    ['no session', { ...event, session_id: 4 }]
  ])('leaves others: %s', (_, other) => {
    expect(readActivity(other)).toBeNull();
  });
});

describe('SerialWatch', () => {
  it('knows nothing of what came before the first event', () => {
    expect(new SerialWatch().follows(0)).toBe(false);
  });

  it('sees that each event follows the one before', () => {
    const watch = new SerialWatch();
    watch.follows(4);
    expect([5, 6, 7].map(serial => watch.follows(serial))).toEqual([
      true,
      true,
      true
    ]);
  });

  it('sees a gap once', () => {
    const watch = new SerialWatch();
    watch.follows(4);
    expect(watch.follows(6)).toBe(false);
    expect(watch.follows(7)).toBe(true);
  });

  it('sees that the server started anew', () => {
    const watch = new SerialWatch();
    watch.follows(4);
    expect(watch.follows(4)).toBe(false);
    expect(watch.follows(1)).toBe(false);
    expect(watch.follows(2)).toBe(true);
  });
});
