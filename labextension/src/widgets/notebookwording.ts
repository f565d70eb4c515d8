/** How what agents do in notebooks is said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { isFinal } from '../tokens';
import type {
  IAttachedSession,
  ICellRecord,
  IDocument,
  IWaitingFor,
  RecordPeople
} from '../tokens';
import { durationText, momentText, statusWord } from './wording';

/** Characters of a name or a source that are said in a sentence. */
const LONGEST = 44;

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

/** A text that is no longer than can be said in a sentence. */
export function shortText(text: string): string {
  const characters = Array.from(text);
  return characters.length <= LONGEST
    ? text
    : `${characters.slice(0, LONGEST - 1).join('')}…`;
}

/** The first line of a source that says something. */
export function firstLine(source: string): string {
  const line = source.split('\n').find(each => each.trim() !== '') ?? '';
  return shortText(plainName(line.trim()));
}

/** Behind whom an execution waits. */
export function waitingText(
  waiting: IWaitingFor,
  now: number,
  trans: TranslationBundle
): string {
  const since = waiting.since && momentText(waiting.since, now);
  switch (waiting.who) {
    case 'agent': {
      const agent = shortText(plainName(waiting.agent ?? ''));
      return since
        ? trans.__('Waits behind agent %1, since %2', agent, since)
        : trans.__('Waits behind agent %1', agent);
    }
    case 'person':
      return since
        ? trans.__('Waits behind a cell that somebody runs since %1', since)
        : trans.__('Waits behind a cell that somebody runs');
    default:
      return trans.__('Waits for the kernel');
  }
}

/** Seconds from when something began until now, as people read it. */
export function elapsedText(
  since: string,
  now: number,
  trans: TranslationBundle
): string {
  const seconds = Math.floor((now - Date.parse(since)) / 1000);
  return seconds >= 1 ? durationText(seconds, trans) : '';
}

/** How long a cell ran, or has been running. */
export function cellDuration(
  { started_at, finished_at, status }: ICellRecord,
  now: number,
  trans: TranslationBundle
): string {
  if (!started_at) {
    return '';
  }
  if (finished_at) {
    const seconds = (Date.parse(finished_at) - Date.parse(started_at)) / 1000;
    return durationText(Math.max(0, seconds), trans);
  }
  return isFinal(status) ? '' : elapsedText(started_at, now, trans);
}

/** What is called by its mime type, as people call it. */
export function contentText(
  mimetype: string,
  trans: TranslationBundle
): string {
  const known: [RegExp, string][] = [
    [/^(application|text)\/(x-)?(java|ecma)script$/, trans.__('JavaScript')],
    [/^text\/html$/, trans.__('active HTML')],
    [/^image\/svg\+xml$/, trans.__('an SVG image')],
    [/plotly/, trans.__('a Plotly figure')],
    [/vega/, trans.__('a Vega chart')],
    [/bokeh/, trans.__('a Bokeh plot')],
    [/^application\/vnd\.jupyter\.widget/, trans.__('a widget')]
  ];
  return (
    known.find(([pattern]) => pattern.test(mimetype))?.[1] ??
    shortText(plainName(mimetype))
  );
}

/** What is held back of a cell's outputs. */
export function heldText(
  held: readonly string[],
  trans: TranslationBundle
): string {
  const kinds = new Set(held.map(each => contentText(each, trans)));
  return kinds.size === 0
    ? trans.__('Some outputs are held back')
    : trans.__('Held back: %1', Array.from(kinds).join(', '));
}

/** What a person has done to a cell since the agent ran it. */
export function changedText(
  { started_at }: ICellRecord,
  edited: boolean,
  runAgain: boolean,
  trans: TranslationBundle
): string {
  if (runAgain) {
    return edited
      ? trans.__('Edited and run again since')
      : trans.__('Run again since');
  }
  if (!edited) {
    return '';
  }
  return started_at
    ? trans.__('Edited since it ran')
    : trans.__('Edited since');
}

/** What the server calls people whom it does not know by name. */
const NAMELESS = /^[0-9a-f]{32}$/;

/** Whose a cell is. */
export function ownerText(
  { agent, username }: ICellRecord,
  trans: TranslationBundle
): string {
  const name = shortText(plainName(agent.name));
  return username && !NAMELESS.test(username)
    ? trans.__('%1 for %2', name, shortText(plainName(username)))
    : name;
}

/** What an agent does now, in a few words. */
export function doingText(
  { current }: IAttachedSession,
  trans: TranslationBundle
): string {
  if (!current) {
    return trans.__('Idle');
  }
  if (current.status === 'running') {
    return trans.__('Runs %1', firstLine(current.source));
  }
  switch (current.waiting_for?.who) {
    case 'person':
      return trans.__('Waits behind a cell');
    case 'agent': {
      const agent = current.waiting_for.agent ?? '';
      return trans.__('Waits behind %1', shortText(plainName(agent)));
    }
    case 'kernel':
      return trans.__('Waits for the kernel');
    default:
      return statusWord(current.status, trans);
  }
}

/** What an agent does now, and since when. */
export function attachedText(
  attached: IAttachedSession,
  now: number,
  trans: TranslationBundle
): string {
  const { current } = attached;
  const doing = doingText(attached, trans);
  if (current?.waiting_for && current.status !== 'running') {
    return waitingText(current.waiting_for, now, trans);
  }
  const elapsed =
    current?.started_at && elapsedText(current.started_at, now, trans);
  return elapsed ? trans.__('%1, for %2', doing, elapsed) : doing;
}

/** What is recorded of what people run; empty for nothing. */
export function recordPeopleText(
  recorded: RecordPeople,
  trans: TranslationBundle
): string {
  switch (recorded) {
    case 'source':
      return trans.__('What you run here is recorded: sources.');
    case 'outputs':
      return trans.__('What you run here is recorded: sources and outputs.');
    default:
      return '';
  }
}

/** What became of an execution's cell in the notebook, if that matters. */
export function documentText(
  document: IDocument,
  trans: TranslationBundle
): string {
  const { path, reason, status, via } = document;
  if (status === 'not_written') {
    return reason
      ? trans.__('No cell in %1: %2', plainName(path), reason)
      : trans.__('No cell in %1', plainName(path));
  }
  switch (via) {
    case 'collaboration':
      return trans.__('Written to the live document');
    case 'tab':
      return trans.__('Written through an open tab');
    case 'contents':
      return trans.__('Written to the file');
    default:
      return trans.__('Not written yet');
  }
}
