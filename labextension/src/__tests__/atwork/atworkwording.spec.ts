import { nullTranslator } from '@jupyterlab/translation';
import type { IAgentAtWork, IDocument, Status } from '../../tokens';
import {
  askedText,
  proposingText,
  atWorkTitle,
  stoppedText,
  stopText
} from '../../atwork/atworkwording';
import { execution, session } from '../fakes';

const trans = nullTranslator.load('jupyter_agent_exec');

function agent(status: Status, seq = 1, name = 'analyst'): IAgentAtWork {
  return {
    session: session({ agent: { name, version: null, model: null } }),
    pending: [execution({ seq, execution_count: null, status })],
    current: null
  };
}

const EVIL = { name: `a\u202e${'b'.repeat(60)}`, version: null, model: null };
const PLAIN = `a\ufffd${'b'.repeat(41)}…`;

describe('atWorkTitle', () => {
  it('tells what each does or proposes', () => {
    const agents = [
      agent('awaiting_approval', 3),
      agent('running', 12, 'coder'),
      agent('queued', 4, EVIL.name)
    ];
    const proposing = [session({ proposed: 2 })];
    expect(atWorkTitle(agents, proposing, trans).split('\n')).toEqual([
      '“analyst” · cell 3: Needs approval',
      '“coder” · cell 12: Running',
      `“${PLAIN}” · cell 4: Queued`,
      '“analyst” · 2 proposed changes'
    ]);
  });
});

describe('stopText', () => {
  it('names the agent and the cell', () => {
    const { agent: analyst } = session();
    expect(stopText(analyst, { seq: 12, execution_count: null }, trans)).toBe(
      'Stop “analyst”: cell 12'
    );
    expect(stopText(analyst, { seq: 12, execution_count: 16 }, trans)).toBe(
      'Stop “analyst”: [16]'
    );
    expect(stopText(analyst, { seq: null, execution_count: null }, trans)).toBe(
      'Stop “analyst”'
    );
    expect(stopText(analyst, null, trans)).toBe('Stop “analyst”');
    expect(stopText(EVIL, { seq: 1, execution_count: null }, trans)).toBe(
      `Stop “${PLAIN}”: cell 1`
    );
  });
});

describe('stoppedText', () => {
  const idle = session();
  const ended = execution({ status: 'interrupted' });
  const goesOn = execution({
    seq: 4,
    execution_count: null,
    status: 'running',
    finished_at: null
  });

  it('says that the kernel is free', () => {
    const free = {
      isFree: true,
      text: 'Stopped “analyst”; the kernel is free.'
    };
    expect(stoppedText({ execution: ended, session: idle }, trans)).toEqual(
      free
    );
    expect(stoppedText({ execution: null, session: idle }, trans)).toEqual(
      free
    );
  });

  it('says that the kernel is busy otherwise', () => {
    const kernel = { ...idle.kernel!, execution_state: 'busy' as const };
    const busy = { execution: ended, session: session({ kernel }) };
    expect(stoppedText(busy, trans)).toEqual({
      isFree: false,
      text: 'Stopped “analyst”; the kernel is busy with other code.'
    });
  });

  it('says that the code ignores the interrupt, or has not ended yet', () => {
    const ignored = { ...goesOn, interrupt_ignored: true };
    expect(stoppedText({ execution: ignored, session: idle }, trans)).toEqual({
      isFree: false,
      text: '“analyst”: cell 4 ignored the interrupt and is still running. Restart or shut down its kernel to end it.'
    });
    expect(stoppedText({ execution: goesOn, session: idle }, trans)).toEqual({
      isFree: false,
      text: '“analyst”: cell 4 is still running.'
    });
  });

  it('says that the kernel was ended for it', () => {
    const ignored = { ...ended, interrupt_ignored: true };
    expect(stoppedText({ execution: ignored, session: idle }, trans)).toEqual({
      isFree: true,
      text: 'Stopped “analyst”. The code ignored the interrupt, so its kernel was shut down.'
    });
  });
});

describe('what is notified', () => {
  it('says who proposes changes of which notebook', () => {
    const proposing = session({ path: 'a/b\u202e.ipynb', proposed: 1 });
    expect(proposingText(proposing, trans)).toBe(
      '“analyst” (Full access): 1 proposed change of b\ufffd.ipynb'
    );
  });

  it('says in plain text who asks, and where', () => {
    const asks = execution({
      seq: 2,
      execution_count: null,
      source: '\n<b>x</b> = 1\ny',
      agent: EVIL
    });
    expect(askedText(asks, trans)).toBe(
      `“${PLAIN}” (Full access) needs approval for cell 2: <b>x</b> = 1`
    );
    const document = { path: 'a\u202e.ipynb' } as IDocument;
    expect(askedText({ ...asks, document }, trans)).toBe(
      `“${PLAIN}” (Full access) needs approval for cell 2: a\ufffd.ipynb`
    );
  });
});
