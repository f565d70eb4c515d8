import { nullTranslator } from '@jupyterlab/translation';
import type { IJournalEvent } from '../../tokens';
import { eventDetail, eventWord } from '../../widgets/wording';

const trans = nullTranslator.load('jupyter_agent_exec');

function event(given: Partial<IJournalEvent> = {}): IJournalEvent {
  return {
    n: 1,
    type: 'interrupted',
    at: '2026-01-02T03:04:05.000Z',
    by: 'ada',
    by_kind: 'person',
    after_seq: 1,
    execution_id: null,
    text: null,
    ...given
  };
}

describe('eventWord', () => {
  it.each([
    ['kernel_started', 'Kernel started'],
    ['cell_rerun', 'Compared with before'],
    // Cells and notebooks show these themselves, or nobody needs them here.
    ['approved', null],
    ['cell_written', null],
    ['kernel_inspected', null],
    ['moon_phase', null]
  ])('says what only a line can tell: %s', (type, words) => {
    expect(eventWord(type, trans)).toBe(words);
  });
});

describe('eventDetail', () => {
  it('show nothing that cannot be seen or turns the text around it', () => {
    expect(eventDetail(event({ text: 'a\u202eb\nc' }), trans)).toBe(
      'a\ufffdb\ufffdc'
    );
  });

  it('cut what is long', () => {
    expect(eventDetail(event({ text: 'x'.repeat(300) }), trans)).toHaveLength(
      300
    );
    const cut = eventDetail(event({ text: 'x'.repeat(301) }), trans);
    expect(cut).toHaveLength(300);
    expect(cut).toMatch(/x…$/);
  });

  it.each([
    ['interrupted', 'asked', ''],
    ['interrupted', 'cancelled', 'the execution was cancelled'],
    ['interrupted', 'timed_out', 'it timed out'],
    ['kernel_started', 'died', 'the previous one died'],
    ['kernel_started', 'changed', /a different kernel/],
    ['person_ran', 'died', 'died'],
    ['kernel_started', 'of age', 'of age'],
    ['approval_granted', '2026-01-02T01:36:00.000Z', /^until .*36/]
  ])('say in words why: %s, %s', (type, text, words) => {
    expect(eventDetail(event({ type, text }), trans)).toMatch(
      typeof words === 'string' ? new RegExp(`^${words}$`) : words
    );
  });

  it('are empty where there is nothing to say', () => {
    expect(eventDetail(event(), trans)).toBe('');
  });
});
