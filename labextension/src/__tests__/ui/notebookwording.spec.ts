import { nullTranslator } from '@jupyterlab/translation';
import type {
  IAgentAtWork,
  ICellRecord,
  IExecution,
  IWaitingFor
} from '../../tokens';
import {
  cellDuration,
  changedText,
  doingText,
  firstLine,
  heldText,
  notWrittenText,
  ownerText,
  recordPeopleText,
  staleText,
  waitingText
} from '../../ui/notebookwording';
import { plainName, shortText } from '../../ui/wording';
import { execution } from '../fakes';

const trans = nullTranslator.load('jupyter_agent_exec');
const NOW = Date.parse('2026-01-02T03:04:15.000Z');

function record(given: Partial<ICellRecord> = {}): ICellRecord {
  return {
    session_id: 's_1',
    execution_id: 'x_1',
    seq: 1,
    agent: { name: 'analyst', version: null, model: null },
    username: 'ada',
    purpose: null,
    status: 'ok',
    reason: null,
    accepted_at: '2026-01-02T03:04:05.000Z',
    started_at: '2026-01-02T03:04:05.000Z',
    finished_at: '2026-01-02T03:04:06.500Z',
    source_sha256: '',
    was_edited: false,
    execution_count: 1,
    outputs: 'inert',
    held: [],
    cell_id: null,
    ...given
  };
}

function waiting(given: Partial<IWaitingFor> = {}): IWaitingFor {
  return {
    who: 'person',
    agent: null,
    ...given
  };
}

function attached(
  given: Partial<IExecution> | null
): Pick<IAgentAtWork, 'current'> {
  return { current: given && execution(given) };
}

describe('plainName', () => {
  it('leaves names of all scripts as they are', () => {
    for (const name of ['analyst', 'محلل', 'अ‍नालिस्ट', '👩‍💻 bot', "O'Neil"]) {
      expect(plainName(name)).toBe(name);
    }
  });

  it('shows what turns the text around it, or cannot be seen', () => {
    expect(plainName('a\u202eb\u0007c\u2067d\u200be\n')).toBe(
      'a\ufffdb\ufffdc\ufffdd\ufffde\ufffd'
    );
  });
});

describe('shortText', () => {
  it('keeps 44 characters, however many units they have', () => {
    const name = '😀'.repeat(44);
    expect(shortText(name)).toBe(name);
    expect(shortText(`${name}x`)).toBe(`${'😀'.repeat(43)}…`);
  });
});

describe('firstLine', () => {
  it('is the first line that is not empty', () => {
    expect(firstLine('\n  \n  x = 1  \ny')).toBe('x = 1');
    expect(firstLine('')).toBe('');
  });
});

describe('staleText', () => {
  it.each([
    ['changed', ['df', 'x'], 'Out of date: [3] changed df, x'],
    ['unknown', ['exec'], 'Out of date: [3] may have changed anything: exec'],
    ['edited', [], 'Out of date: the code was edited since it ran']
  ] as const)('says why: %s', (cause, names, sentence) => {
    const stale = { cause, names: [...names], execution_count: 3 };
    expect(staleText({ ...stale, certain: true }, trans)).toBe(sentence);
    const maybe = sentence.replace('Out', 'May be out');
    expect(staleText({ ...stale, certain: false }, trans)).toBe(maybe);
  });
});

describe('waitingText', () => {
  it.each([
    [waiting(), 'Waiting for a running cell'],
    [
      waiting({ who: 'agent', agent: 'b\u202e' }),
      'Waiting for agent “b\ufffd”'
    ],
    [waiting({ who: 'kernel' }), 'Waiting for the kernel'],
    [waiting({ who: 'approval' }), 'Needs approval'],
    [waiting({ who: 'pause' }), 'Waiting until agents are resumed']
  ])('says it of %j', (given, sentence) => {
    expect(waitingText(given, trans)).toBe(sentence);
  });
});

describe('cellDuration', () => {
  it('tells how long a cell ran, or has run so far', () => {
    const duration = (given: Partial<ICellRecord>) =>
      cellDuration(record(given), NOW);
    expect(duration({})).toBe('1.5 sec');
    expect(duration({ finished_at: null, status: 'running' })).toBe('10 sec');
    const started_at = '2026-01-02T03:04:14.500Z';
    const begun = { started_at, finished_at: null, status: 'running' } as const;
    expect(duration(begun)).toBe('');
    expect(duration({ finished_at: null, status: 'lost' })).toBe('');
    expect(duration({ started_at: null, status: 'queued' })).toBe('');
  });
});

describe('heldText', () => {
  it('names each kind once', () => {
    const held = ['application/javascript', 'text/javascript', 'image/svg+xml'];
    expect(heldText(held, trans)).toBe('JavaScript, Image hidden');
  });

  it('says so when it is not known what', () => {
    expect(heldText([], trans)).toBe('Output hidden');
  });
});

describe('ownerText', () => {
  it('names the agent and the person', () => {
    expect(ownerText(record(), trans)).toBe('“analyst” for ada');
  });

  it.each(['', '0123456789abcdef0123456789abcdef'])(
    'does not name a person whose name is not known (%p)',
    username => {
      expect(ownerText(record({ username }), trans)).toBe('“analyst”');
    }
  );
});

describe('doingText', () => {
  it.each([
    [null, 'Idle'],
    [{ status: 'running', source: 'x = 1\ny' }, 'Running x = 1'],
    [
      { status: 'queued', started_at: null, waiting_for: waiting() },
      'Waiting for a running cell'
    ],
    [
      {
        status: 'queued',
        started_at: null,
        waiting_for: waiting({ who: 'agent', agent: 'b' })
      },
      'Waiting for agent “b”'
    ],
    [
      {
        status: 'queued',
        started_at: null,
        waiting_for: waiting({ who: 'kernel' })
      },
      'Waiting for the kernel'
    ],
    [
      {
        status: 'queued',
        started_at: null,
        waiting_for: waiting({ who: 'pause' })
      },
      'Waiting until agents are resumed'
    ],
    [
      {
        status: 'awaiting_approval',
        started_at: null,
        waiting_for: waiting({ who: 'approval' })
      },
      'Needs approval'
    ],
    [{ status: 'queued', started_at: null }, 'Queued']
  ] as [Partial<IExecution> | null, string][])(
    'say of %j what the agent does',
    (given, text) => {
      expect(doingText(attached(given), trans)).toBe(text);
    }
  );
});

describe('recordPeopleText', () => {
  it('tells people what is recorded of them', () => {
    expect(recordPeopleText('off', trans)).toBe('');
    expect(recordPeopleText('source', trans)).toMatch(/the source of the code/);
    expect(recordPeopleText('outputs', trans)).toMatch(/and outputs/);
  });
});

describe('notWrittenText', () => {
  it.each([
    ['It is read-only.', 'No cell written to a.ipynb: It is read-only.'],
    [null, 'No cell written to a.ipynb']
  ])('gives the reason %p', (reason, sentence) => {
    expect(notWrittenText({ path: 'a.ipynb', reason }, trans)).toBe(sentence);
  });
});

describe('changedText', () => {
  it.each([
    [false, false, ''],
    [true, false, 'Differs from what ran'],
    [false, true, 'Run again since'],
    [true, true, 'Run again since']
  ])('of edited %p and run again %p is %p', (edited, again, text) => {
    expect(changedText(record(), edited, again, trans)).toBe(text);
  });

  it('says that it was edited before it ran', () => {
    const approved = record({ was_edited: true });
    expect(changedText(approved, false, false, trans)).toBe(
      'Edited before it ran'
    );
    expect(changedText(approved, true, false, trans)).toBe(
      'Differs from what ran'
    );
  });

  it('does not say that it ran if it did not', () => {
    const cancelled = record({ status: 'cancelled', started_at: null });
    expect(changedText(cancelled, true, false, trans)).toBe('Edited since');
  });
});
