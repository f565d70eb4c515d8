import { nullTranslator } from '@jupyterlab/translation';
import type { IJournalEvent } from '../../tokens';
import { eventDetail, eventWord } from '../../widgets/eventwording';

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
    'opened',
    'closed',
    'kernel_started',
    'kernel_ended',
    'interrupted',
    'recovered',
    'late_output',
    'display_updated',
    'approval_asked',
    'approved',
    'rejected',
    'approval_granted',
    'agents_paused',
    'agents_resumed',
    'policy_set',
    'reviewed',
    'person_ran',
    'kernel_inspected',
    'notebook_created',
    'notebook_moved',
    'notebook_edit_asked',
    'notebook_edit_refused',
    'notebook_edited',
    'edits_proposed',
    'edits_decided',
    'outputs_accepted',
    'outputs_discarded',
    'outputs_restored',
    'cell_written',
    'cell_discarded',
    'cell_restored',
    'files_written',
    'file_uploaded',
    'file_deleted',
    'file_unchanged'
  ])('has words of its own for %s', type => {
    expect(eventWord(type, trans)).not.toMatch(/^Recorded/);
  });

  it('is fair to what a newer server records', () => {
    expect(eventWord('moon_phase\u202e', trans)).toBe(
      'Recorded: moon phase\ufffd'
    );
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
    ['interrupted', 'closing', 'the session was being closed'],
    ['closed', 'closed', ''],
    ['closed', 'idle', 'it was idle for too long'],
    ['closed', 'init_failed', 'its setup code failed'],
    ['closed', 'server_stopped', 'the server was stopped'],
    ['closed', 'server_died', 'the server ended unexpectedly'],
    ['closed', 'token_revoked', 'its agent token was revoked'],
    ['closed', 'token_expired', 'its agent token has expired'],
    ['kernel_started', 'died', 'the previous kernel died'],
    ['kernel_started', 'restarted', 'it was restarted'],
    ['kernel_started', 'interrupt_ignored', /ignored an interrupt/],
    ['kernel_started', 'culled', /idle for too long/],
    ['kernel_started', 'shut_down', /shut down the previous kernel/],
    ['kernel_started', 'changed', /a different kernel/],
    ['person_ran', 'died', 'died'],
    ['closed', 'of age', 'of age'],
    ['reviewed', 'approved', ''],
    ['reviewed', 'approved: well done', 'well done'],
    ['reviewed', 'flagged: why', 'flagged: why'],
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
