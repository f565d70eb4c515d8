import { nullTranslator } from '@jupyterlab/translation';
import type { IApproval } from '../../tokens';
import {
  askerText,
  brokenText,
  expiryText,
  kernelText,
  outcomeText,
  pausedText,
  sinkText
} from '../../approvals/approvalwording';
import { approval, execution, session } from '../fakes';

const trans = nullTranslator.load('jupyter_agent_exec');
const AT = '2026-01-02T03:04:05.000Z';
const NAMELESS = '0123456789abcdef0123456789abcdef';

describe('askerText', () => {
  it('names the agent and the person, in plain text', () => {
    const agent = { name: 'an\u202ealyst', version: '1', model: 'm\u200b' };
    const token = { id: 't_1', label: 'Sales\u2066' };
    const given = { agent, token, username: 'a\u2066da' };
    expect(askerText(given, trans)).toBe(
      '“an\ufffdalyst 1 (m\ufffd)” (Sales\ufffd), on behalf of a\ufffdda,'
    );
    expect(askerText({ agent, token: null, username: NAMELESS }, trans)).toBe(
      '“an\ufffdalyst 1 (m\ufffd)” (Full access)'
    );
  });
});

describe('kernelText', () => {
  const text = (given: Partial<IApproval> | null, known = true) =>
    kernelText(
      execution({ approval: given && approval(given) }),
      known ? session() : null,
      trans
    );

  it('tells in which life of the kernel it would run', () => {
    expect(text({})).toBe('python3');
    expect(text({ incarnation: 3 })).toBe('python3, restarted 2 times');
    expect(text({}, false)).toBe('k');
  });

  it('tells that there is none yet', () => {
    expect(text({ kernel_id: null })).toBe('python3, not started yet');
    expect(text({ kernel_id: null }, false)).toBe('not started yet');
    expect(text(null)).toBe('python3, not started yet');
  });

  it('knows the kernel by its execution or by the session’s target', () => {
    const kernel = { id: 'k', name: 'ir' };
    const ran = { ...kernel, restarted: false, reason: null };
    const given = execution({ approval: approval(), kernel: ran });
    expect(kernelText(given, session(), trans)).toBe('ir');
    const asking = execution({ approval: approval() });
    expect(kernelText(asking, session({ kernel: null }), trans)).toBe(
      'python3'
    );
  });
});

describe('expiryText', () => {
  it.each([
    [-1, 'expires now'],
    [80, 'expires in 1 minute'],
    [295, 'expires in 5 minutes'],
    [7200, 'expires in 2 hours']
  ])('of %d seconds', (seconds, text) => {
    const now = Date.parse(AT) - seconds * 1000;
    expect(expiryText(AT, now, trans)).toBe(text);
  });
});

describe('outcomeText', () => {
  it.each([
    [{ status: 'approved', decided_by: 'Ada' }, 'Approved by Ada'],
    [{ status: 'approved', decided_by: NAMELESS }, 'Approved by the user'],
    [
      { status: 'approved', decided_by: 'Ada', asked_source: '1' },
      'Edited and approved by Ada'
    ],
    [
      { status: 'approved', asked_source: '1' },
      'Edited and approved by the user'
    ],
    [{ status: 'rejected', decided_by: 'B\u202eb' }, 'Rejected by B\ufffdb'],
    [{ status: 'rejected' }, 'Rejected by the user'],
    [{ status: 'expired' }, 'Expired: nobody decided in time'],
    [{ status: 'withdrawn' }, 'Withdrawn by the agent']
  ] as const)('of %j', (given, text) => {
    const asked = execution({ approval: approval(given) });
    expect(outcomeText(asked, trans)).toBe(text);
  });

  it('is said also if it is not known how', () => {
    expect(outcomeText(execution(), trans)).toBe('Already decided');
    const status = 'awaiting_approval';
    const asking = execution({ status, approval: approval() });
    expect(outcomeText(asking, trans)).toBe('');
  });
});

describe('pausedText', () => {
  it('tells who and since when', () => {
    const now = Date.parse(AT);
    expect(pausedText({ by: 'Ada', at: AT }, now, trans)).toMatch(
      /by Ada, since .*04/
    );
    expect(pausedText({ by: NAMELESS, at: AT }, now, trans)).toMatch(
      /by the user, since .*04/
    );
  });
});

describe('brokenText', () => {
  it('names the break', () => {
    const broken = { name: 'b_1', found: ['ledger-1 is gone.'], at: AT };
    expect(brokenText(broken, trans)).toContain('not signed any more (b_1)');
  });
});

describe('sinkText', () => {
  const sink = {
    name: 'audit',
    lag: 90,
    max_lag: null,
    is_stopping_code: false,
    entries_behind: 3,
    error: 'OperationalError: connection refused',
    failing_since: AT
  };

  it('tells what the copy lacks', () => {
    expect(sinkText(sink, trans)).toBe(
      'The record cannot be copied to "audit": it lacks 3 entries'
    );
    expect(sinkText({ ...sink, entries_behind: 1 }, trans)).toContain(
      'lacks 1 entry'
    );
  });

  it('tells that nothing runs', () => {
    const strict = { ...sink, max_lag: 30, is_stopping_code: true };
    expect(sinkText(strict, trans)).toMatch(/^Agents cannot run code.*"audit"/);
  });
});
