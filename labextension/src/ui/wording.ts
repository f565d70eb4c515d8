/** How values are said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type * as nbformat from '@jupyterlab/nbformat';
import { ApiError } from '../api/errors';
import type {
  IAgent,
  IAgentSession,
  IExecution,
  IJournalEvent,
  ILeftOut,
  ISearchHit,
  ITarget,
  ITokenRef,
  Status
} from '../tokens';

/** What went wrong, and what to do about it. */
export interface IAdvice {
  title: string;
  hint: string;
}

/**
 * A name as it can stand in a sentence: what would turn the text around it,
 * or cannot be seen, is shown as a replacement character.
 */
export function plainName(name: string): string {
  return name.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu,
    '\ufffd'
  );
}

/** Characters of a name or a source that are said in a sentence. */
const LONGEST = 44;

/** A text that is no longer than can be said in a sentence. */
export function shortText(text: string, longest = LONGEST): string {
  const characters = Array.from(text);
  return characters.length <= longest
    ? text
    : `${characters.slice(0, longest - 1).join('')}…`;
}

/** What the server calls people whom it does not know by name. */
const NAMELESS = /^([0-9a-f]{32}|Anonymous \p{Lu}\p{Ll}+)$/u;

/** A person's name as it can stand in a sentence; empty if they have none. */
export function personName(username: string | null): string {
  return username && !NAMELESS.test(username) ? plainName(username) : '';
}

/** Names of the user of this page, as entries of the record have them. */
export const ownNames = new Set<string>();

/** Who acted, as it can stand in a sentence: a name, "you" or "the user". */
export function userText(name: string, trans: TranslationBundle): string {
  return ownNames.has(name)
    ? trans.__('you')
    : shortText(personName(name)) || trans.__('the user');
}

/** The word for a status. */
export function statusWord(status: Status, trans: TranslationBundle): string {
  switch (status) {
    case 'awaiting_approval':
      return trans.__('Needs approval');
    case 'queued':
      return trans.__('Queued');
    case 'running':
      return trans.__('Running');
    case 'awaiting_input':
      return trans.__('Needs input');
    case 'ok':
      return trans.__('Done');
    case 'error':
      return trans.__('Error');
    case 'interrupted':
      return trans.__('Interrupted');
    case 'timed_out':
      return trans.__('Timed out');
    case 'kernel_died':
      return trans.__('Kernel died');
    case 'cancelled':
      return trans.__('Cancelled');
    case 'rejected':
      return trans.__('Rejected');
    case 'lost':
      return trans.__('Lost');
    default:
      // A status that a newer server knows.
      return String(status);
  }
}

/** The numbers of a cell. */
export interface ICounted {
  /** Of the kernel, as a notebook shows it; null until the cell has run. */
  execution_count: number | null;
  /** Of its session. */
  seq?: number | null;
}

/** What waits for the user; empty if nothing does. */
export function waitsText(
  {
    asking,
    inputs,
    proposing
  }: Record<'asking' | 'inputs' | 'proposing', readonly unknown[]>,
  trans: TranslationBundle
): string {
  return [
    asking.length > 0 &&
      trans._n(
        '%1 cell needs approval',
        '%1 cells need approval',
        asking.length
      ),
    inputs.length > 0 &&
      trans._n('%1 cell needs input', '%1 cells need input', inputs.length),
    proposing.length > 0 &&
      trans._n('%1 proposal', '%1 proposals', proposing.length)
  ]
    .filter(Boolean)
    .join(' · ');
}

/** How many changes a session proposes. */
export function proposedText(
  { proposed }: IAgentSession,
  trans: TranslationBundle
): string {
  return trans._n('%1 proposed change', '%1 proposed changes', proposed);
}

/** What a reason means that the record names by a word; null for others. */
function reasonText(reason: string, trans: TranslationBundle): string | null {
  const reasons: Partial<Record<string, string>> = {
    idle: trans.__('it was idle for too long'),
    init_failed: trans.__('its setup code failed'),
    server_stopped: trans.__('the server was stopped'),
    server_died: trans.__('the server ended unexpectedly'),
    token_revoked: trans.__('its agent token was revoked'),
    token_expired: trans.__('its agent token has expired'),
    died: trans.__('the previous one died'),
    restarted: trans.__('it was restarted'),
    interrupt_ignored: trans.__('the previous one ignored an interrupt'),
    culled: trans.__('the previous one was idle for too long'),
    shut_down: trans.__('somebody shut down the previous one'),
    changed: trans.__('somebody selected a different kernel'),
    undone: trans.__('with the variables from before what was undone'),
    rescued: trans.__('the previous one died, and earlier variables are back')
  };
  return reasons[reason] ?? null;
}

/**
 * Who closed a session, or why it is closed.
 *
 * Agents with a user's own credential cannot be told from that user. This page
 * closes no session, so one that nobody with a name closed, its agent closed.
 */
export function closedText(
  { agent, close_reason: reason }: IAgentSession,
  event: IJournalEvent | undefined,
  trans: TranslationBundle
): string {
  if (reason !== null && reason !== 'closed') {
    return trans.__('Closed: %1', reasonText(reason, trans) ?? reason);
  }
  if (!event) {
    return trans.__('Closed');
  }
  const by = event.by_kind === 'person' ? (event.by ?? '') : '';
  const isNamed = personName(by) !== '' || ownNames.has(by);
  return trans.__(
    'Closed by %1',
    isNamed ? userText(by, trans) : nameOf(agent)
  );
}

/** What a person should know of how an execution came about or ended. */
export function executionNotes(
  execution: IExecution,
  trans: TranslationBundle
): string[] {
  const notes: string[] = [];
  if (execution.init) {
    notes.push(trans.__('Setup code of the session.'));
  }
  if (execution.trial) {
    notes.push(
      trans.__('Trial: in a copy of the kernel, so it changed nothing.')
    );
  }
  if (execution.kernel?.restarted) {
    notes.push(freshKernel(execution.kernel.reason, trans));
  }
  if (execution.reason) {
    notes.push(plainName(execution.reason.replace(/\s+/g, ' ')));
  }
  if (execution.interrupt_ignored) {
    notes.push(trans.__('The code ignored the interrupt and kept running.'));
  }
  return notes;
}

/** Why an agent runs code, in its own words. */
export function purposeText(purpose: string, trans: TranslationBundle): string {
  return trans.__('Says why: %1', quoted(purpose.replace(/\s+/g, ' ')));
}

function freshKernel(reason: string | null, trans: TranslationBundle): string {
  const known = reason && reasonText(reason, trans);
  return known
    ? trans.__('In a new kernel: %1.', known)
    : trans.__('In a new kernel: earlier variables are lost.');
}

/** What a cell is called: as its notebook shows it, or by its place in its session. */
export function cellName(
  { execution_count, seq = null }: ICounted,
  trans: TranslationBundle
): string {
  return execution_count === null
    ? trans.__('cell %1', seq)
    : `[${execution_count}]`;
}

/** The same, and how it stands. */
export function cellStatus(
  execution: Pick<IExecution, 'execution_count' | 'seq' | 'status'>,
  trans: TranslationBundle
): string {
  const { status } = execution;
  return `${cellName(execution, trans)}: ${statusWord(status, trans)}`;
}

/**
 * What an agent says, in quotation marks that it cannot close.
 *
 * Its name, its titles and the like are its own words: they must not be read
 * as a statement of this page.
 */
export function quoted(words: string): string {
  return `“${plainName(words).replace(/[“”„‟]/g, "'")}”`;
}

/** An agent's name as it can stand in a sentence: its own words. */
export function nameOf(agent: IAgent): string {
  return quoted(shortText(agent.name));
}

/** An agent's name and what else it says of itself. */
function agentWords(agent: IAgent): string {
  const name = agent.version ? `${agent.name} ${agent.version}` : agent.name;
  return agent.model ? `${name} (${agent.model})` : name;
}

/** The same, as its own words. */
export function agentText(agent: IAgent): string {
  return quoted(agentWords(agent));
}

/** With what an agent came, as people call it; agents have no say in it. */
export function credentialWord(
  token: ITokenRef | null | undefined,
  trans: TranslationBundle
): string {
  return token ? plainName(token.label) : trans.__('Full access');
}

/** What an agent says of itself, and with what it came. */
export function whoText(
  { agent, token }: { agent: IAgent; token?: ITokenRef | null },
  trans: TranslationBundle
): string {
  return `${agentText(agent)} (${credentialWord(token, trans)})`;
}

/** A number of a unit, in the words of the page's language. */
function inUnit(value: number, unit: string, unitDisplay = 'short'): string {
  const digits = { maximumFractionDigits: value < 10 ? 1 : 0 };
  const options = { style: 'unit', unit, unitDisplay, ...digits };
  return value.toLocaleString(undefined, options as Intl.NumberFormatOptions);
}

/** A size as people read it. */
export function sizeText(bytes: number): string {
  return bytes < 1000
    ? inUnit(bytes, 'byte', 'long')
    : bytes < 1_000_000
      ? inUnit(bytes / 1000, 'kilobyte')
      : bytes < 1_000_000_000
        ? inUnit(bytes / 1_000_000, 'megabyte')
        : inUnit(bytes / 1_000_000_000, 'gigabyte');
}

/** A duration as people read it. */
export function durationText(seconds: number): string {
  if (seconds < 0.9995) {
    return inUnit(Math.max(1, Math.round(seconds * 1000)), 'millisecond');
  }
  if (seconds < 59.95) {
    return inUnit(seconds, 'second');
  }
  const whole = Math.round(seconds);
  const minutes = Math.round(seconds / 60);
  return whole < 3600
    ? `${inUnit(Math.floor(whole / 60), 'minute')} ${inUnit(whole % 60, 'second')}`
    : `${inUnit(Math.floor(minutes / 60), 'hour')} ${inUnit(minutes % 60, 'minute')}`;
}

/** A time, in seconds, in its largest unit. */
export function roughly(seconds: number): string {
  const [unit, size]: [string, number] =
    seconds >= 2 * 86_400
      ? ['day', 86_400]
      : seconds >= 2 * 3600
        ? ['hour', 3600]
        : ['minute', 60];
  return inUnit(Math.max(1, Math.round(seconds / size)), unit, 'long');
}

/** A moment: the time today, with the day before that. */
export function momentText(at: string, now: number): string {
  const date = new Date(at);
  const time = date.toLocaleTimeString(undefined, {
    hour: '2-digit',
    minute: '2-digit'
  });
  return date.toDateString() === new Date(now).toDateString()
    ? time
    : `${date.toLocaleDateString()} ${time}`;
}

/** What an error means for a person. */
export function describeError(
  error: unknown,
  trans: TranslationBundle
): IAdvice {
  const message = plainName(
    error instanceof Error ? error.message : String(error)
  );
  if (!(error instanceof ApiError)) {
    return { title: trans.__('Something went wrong'), hint: message };
  }
  switch (error.failure) {
    case 'unreachable':
      return {
        title: trans.__('The server cannot be reached'),
        hint: trans.__(
          'Check that it is running and that you are online. The page reconnects on its own.'
        )
      };
    case 'extension_missing':
      return {
        title: trans.__('The server extension is not enabled'),
        hint: trans.__(
          'Run "jupyter server extension enable jupyter_agent_exec" and restart the server.'
        )
      };
    case 'not_allowed':
      return {
        title: trans.__('The server does not allow this'),
        hint: trans.__(
          'Sign in again, or contact the server’s administrator: %1',
          message
        )
      };
    case 'refused':
      return {
        title: trans.__('The server refused the request'),
        hint: message
      };
  }
}

/** The same in sentences. */
export function errorText(error: unknown, trans: TranslationBundle): string {
  const { hint, title } = describeError(error, trans);
  return `${title}. ${hint}`;
}

/** What the server puts around matches. */
const MATCH = /\u2068([^\u2068\u2069]*)\u2069/;

/** A part of a snippet. */
interface ISnippetPart {
  text: string;
  isMatch: boolean;
}

/** A text in one line, with nothing in it that disguises the rest. */
export function inOneLine(text: string): string {
  return plainName(text.replace(/\s+/g, ' ').trim());
}

/** A snippet in the parts that match and those between them. */
export function snippetParts(snippet: string): ISnippetPart[] {
  // At each odd place is what the expression has captured.
  return snippet
    .split(MATCH)
    .map((text, place) => ({
      text: plainName(text.replace(/\s+/g, ' ')),
      isMatch: place % 2 === 1
    }))
    .filter(({ text }) => text !== '');
}

/** The first line of a source that says something. */
export function sourceLine(source: string): string {
  return inOneLine(source.split('\n').find(line => line.trim() !== '') ?? '');
}

/** A session, or a part of one, that may have a title. */
interface ITitled {
  agent: IAgent | string;
  title: string | null;
}

/** What a session is called: its title, or its agent's name. */
export function titleText({ agent, title }: ITitled): string {
  return quoted(inOneLine(title || nameIn(agent)));
}

/** The agent's name, beside what its session is called; empty if that says it. */
export function besideTitle({ agent, title }: ITitled): string {
  const name = quoted(inOneLine(nameIn(agent)));
  return titleText({ agent, title }) === name ? '' : name;
}

function nameIn(agent: IAgent | string): string {
  return typeof agent === 'string' ? agent : agent.name;
}

/** Where code runs, in general. */
function targetWord(kind: ITarget['kind'], trans: TranslationBundle): string {
  switch (kind) {
    case 'scratch':
      return trans.__('Scratch kernel');
    case 'notebook':
      return trans.__('Notebook');
    case 'kernel':
      return trans.__('Running kernel');
  }
}

/** Where a session's code runs: a notebook is named. */
export function targetText(
  { path, target }: IAgentSession,
  trans: TranslationBundle
): string {
  return target.kind === 'notebook'
    ? inOneLine(path ?? target.path)
    : targetWord(target.kind, trans);
}

/** How many cells were found, as those hear it who listen to the page. */
export function foundText(
  hits: readonly ISearchHit[],
  hasMore: boolean,
  trans: TranslationBundle
): string {
  const count = hits.length;
  if (count === 0) {
    return trans.__('No cell matches');
  }
  return hasMore
    ? trans.__('The newest %1 cells that match', count)
    : trans._n('%1 cell matches', '%1 cells match', count);
}

/** What a cell does not show of what came after it; empty if nothing did. */
export function afterText(
  events: readonly IJournalEvent[],
  trans: TranslationBundle
): string {
  const names = events
    .filter(({ type }) => type === 'person_ran')
    .map(({ by }) => userText(by ?? '', trans));
  const isErased = events.some(({ type }) => type === 'erased');
  const edits = events.filter(({ type }) => type === 'notebook_edited').length;
  return [
    edits > 0 &&
      trans._n('Changed the notebook', 'Changed the notebook %1 times', edits),
    names.length > 0 &&
      trans._n(
        'Then %2 ran %1 cell in this kernel',
        'Then %2 ran %1 cells in this kernel',
        names.length,
        [...new Set(names)].join(', ')
      ),
    isErased && trans.__('Erased from the record')
  ]
    .filter(Boolean)
    .join(' · ');
}

/** The richest of an output's types, in words; its own name would tell nothing. */
export function typeText(
  mimetypes: readonly string[],
  trans: TranslationBundle
): string {
  const rich = mimetypes.filter(each => each !== 'text/plain');
  const known: [RegExp, string][] = [
    [/plotly|vega|bokeh/, trans.__('Chart')],
    [/^application\/vnd\.jupyter\.widget/, trans.__('Widget')],
    [/^image\//, trans.__('Image')],
    [/^text\/html$/, 'HTML'],
    [/^(application|text)\/(x-)?(java|ecma)script$/, 'JavaScript']
  ];
  const found = known.find(([pattern]) =>
    rich.some(each => pattern.test(each))
  );
  const other = rich.length > 0 ? trans.__('Output') : trans.__('Text');
  return found?.[1] ?? other;
}

/** An output that was left out, by the richest of its types. */
export function kindText(
  { mimetypes }: ILeftOut,
  output: nbformat.IOutput | undefined,
  trans: TranslationBundle
): string {
  return output?.output_type === 'error'
    ? trans.__('Traceback')
    : typeText(mimetypes, trans);
}
