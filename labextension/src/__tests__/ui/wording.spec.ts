import { nullTranslator } from '@jupyterlab/translation';
import { ApiError } from '../../api/errors';
import type { Failure } from '../../api/errors';
import type { IExecution, IJournalEvent, Status } from '../../tokens';
import { statusIcons } from '../../ui/icons';
import {
  agentText,
  quoted,
  whoText,
  closedText,
  ownNames,
  userText,
  describeError,
  durationText,
  executionNotes,
  purposeText,
  momentText,
  afterText,
  titleText,
  sizeText,
  statusWord
} from '../../ui/wording';
import { execution, session } from '../fakes';

const trans = nullTranslator.load('jupyter_agent_exec');

describe('statusWord', () => {
  const statuses = Object.keys(statusIcons) as Status[];

  it('has a different word for each status that has an icon', () => {
    const words = statuses.map(status => statusWord(status, trans));
    expect(new Set(words).size).toBe(12);
    expect(words).not.toContain(undefined);
  });

  it('says a status that it does not know as it is', () => {
    expect(statusWord('paused' as Status, trans)).toBe('paused');
  });
});

describe('closedText', () => {
  it.each([
    [null, 'Closed'],
    ['closed', 'Closed'],
    ['idle', /idle for too long/],
    ['init_failed', /setup code/],
    ['server_stopped', /stopped/],
    ['server_died', /unexpectedly/],
    ['token_revoked', /token was revoked/],
    ['token_expired', /token has expired/],
    ['expired', /expired/]
  ])('explains %s', (close_reason, sentence) => {
    expect(closedText(session({ close_reason }), undefined, trans)).toMatch(
      sentence
    );
  });

  it.each([
    ['agent', 'an agent on behalf of ada', 'Closed by “analyst”'],
    ['person', 'Ada', 'Closed by Ada'],
    ['person', 'Me', 'Closed by you'],
    ['person', 'Anonymous Hermippe', 'Closed by “analyst”']
  ] as const)('names the %s %s', (by_kind, by, sentence) => {
    ownNames.add('Me');
    const event: IJournalEvent = {
      n: 1,
      type: 'closed',
      at: '2026-01-02T03:04:05.000Z',
      by,
      by_kind,
      after_seq: 0
    };
    const given = session({ close_reason: 'closed' });
    expect(closedText(given, event, trans)).toBe(sentence);
  });
});

describe('userText', () => {
  it.each([
    ['ada', 'ada'],
    ['Me', 'you'],
    ['0123456789abcdef0123456789abcdef', 'the user'],
    ['Anonymous Hermippe', 'the user'],
    ['a\u202eda', 'a\ufffdda']
  ])('call %s %s', (name, text) => {
    ownNames.add('Me');
    expect(userText(name, trans)).toBe(text);
  });
});

describe('afterText', () => {
  it('says how much users ran and that something was erased, and nothing else', () => {
    const ran = (by: string | null) => ({ type: 'person_ran', by });
    const text = (...events: object[]) =>
      afterText(events as IJournalEvent[], trans);
    expect(text({ type: 'interrupted', by: 'ada' })).toBe('');
    expect(text(ran('a\u202eda'))).toBe(
      'Then a\ufffdda ran 1 cell in this kernel'
    );
    const erased = { type: 'erased', by: 'ada' };
    expect(text(ran('ada'), ran('ada'), ran(null), erased)).toBe(
      'Then ada, the user ran 3 cells in this kernel · Erased from the record'
    );
  });
});

describe('purposeText', () => {
  it('is in one line, in the agent’s own words', () => {
    expect(purposeText('To\nsee.\u202e', trans)).toBe(
      'Says why: “To see.\ufffd”'
    );
  });
});

describe('executionNotes', () => {
  it('has nothing to say of an ordinary execution', () => {
    expect(executionNotes(execution(), trans)).toEqual([]);
  });

  it('says all that is out of the ordinary', () => {
    const kernel = {
      id: 'k',
      name: 'python3',
      restarted: true,
      reason: 'died' as const
    };
    const notes = executionNotes(
      execution({
        init: true,
        kernel,
        reason: 'It took too long.',
        interrupt_ignored: true,
        claim: { purpose: 'To see.' }
      }),
      trans
    );
    expect(notes).toHaveLength(4);
    expect(notes[1]).toMatch(/died/);
    expect(notes[2]).toBe('It took too long.');
  });

  it.each<[NonNullable<IExecution['kernel']>['reason'], RegExp]>([
    ['restarted', /restarted/],
    ['interrupt_ignored', /ignored/],
    ['culled', /idle/],
    ['shut_down', /shut down the previous one/],
    ['changed', /different kernel/],
    ['unheard_of' as never, /variables/],
    [null, /variables/]
  ])('explains a kernel that is fresh: %s', (reason, sentence) => {
    const kernel = {
      id: 'k',
      name: 'python3',
      restarted: true,
      reason
    };
    expect(executionNotes(execution({ kernel }), trans)[0]).toMatch(sentence);
  });
});

describe('names', () => {
  it('calls a session by its title, or by its agent', () => {
    expect(titleText(session())).toBe('“Sales”');
    expect(titleText(session({ title: null }))).toMatch(/analyst/);
  });

  it('leaves no agent its say outside of quotation marks', () => {
    const name = 'Bot” · Approved by “Ada';
    expect(quoted(name)).toBe("“Bot' · Approved by 'Ada”");
    const agent = { name: 'Ada (you)', version: null, model: null };
    const token = { id: 't_1', label: 'Sales analyst' };
    expect(whoText({ agent, token }, trans)).toBe(
      '“Ada (you)” (Sales analyst)'
    );
    expect(whoText({ agent, token: null }, trans)).toBe(
      '“Ada (you)” (Full access)'
    );
  });

  it('says what an agent says of itself', () => {
    const agent = { name: 'a', version: '1.2', model: 'm' };
    expect(agentText(agent)).toBe('“a 1.2 (m)”');
    expect(agentText({ ...agent, version: null, model: null })).toBe('“a”');
  });

  it('lets no name hide or turn what stands beside it', () => {
    const name = 'a\u202eb\u0007';
    const agent = { name, version: name, model: name };
    const told = [
      agentText(agent),
      titleText(session({ title: name })),
      titleText(session({ title: null, agent })),
      executionNotes(execution({ reason: `${name}\nc` }), trans).join(),
      describeError(new Error(name), trans).hint
    ];
    for (const text of told) {
      expect(text).toContain('a\ufffdb\ufffd');
      expect(text).not.toMatch(/\p{Cc}|\u202e/u);
    }
  });
});

describe('quantities', () => {
  it.each([
    [1, '1 byte'],
    [999, '999 bytes'],
    [1000, '1 kB'],
    [1234, '1.2 kB'],
    [24_113, '24 kB'],
    [1_234_567, '1.2 MB'],
    [5_000_000_000, '5 GB']
  ])('says %i bytes', (bytes, text) => {
    expect(sizeText(bytes)).toBe(text);
  });

  it.each([
    [0.0001, '1 ms'],
    [0.041, '41 ms'],
    [0.9999, '1 sec'],
    [1.25, '1.3 sec'],
    [42.4, '42 sec'],
    [59.99, '1 min 0 sec'],
    [61, '1 min 1 sec'],
    [3599.6, '1 hr 0 min'],
    [7260, '2 hr 1 min']
  ])('says %f seconds', (seconds, text) => {
    expect(durationText(seconds)).toBe(text);
  });

  it('says the time of today, and the day of another', () => {
    const now = new Date(2026, 0, 2, 12, 0).getTime();
    const today = new Date(2026, 0, 2, 9, 30).toISOString();
    const other = new Date(2026, 0, 1, 9, 30).toISOString();
    expect(momentText(other, now)).toContain(momentText(today, now));
    expect(momentText(other, now)).not.toBe(momentText(today, now));
  });
});

describe('describeError', () => {
  it.each([
    ['unreachable', /reached/],
    ['extension_missing', /not enabled/],
    ['not_allowed', /does not allow this/],
    ['refused', /refused/]
  ])('says what helps: %s', (failure, title) => {
    const advice = describeError(
      new ApiError(failure as Failure, 'Why.'),
      trans
    );
    expect(advice.title).toMatch(title);
    expect(advice.hint).not.toBe('');
  });

  it('shows what else went wrong', () => {
    expect(describeError(new Error('Odd.'), trans).hint).toBe('Odd.');
    expect(describeError('odd', trans).hint).toBe('odd');
  });
});
