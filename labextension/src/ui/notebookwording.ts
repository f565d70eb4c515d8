/** How what agents do in notebooks is said to a person. */
import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { isFinal } from '../tokens';
import type {
  IAgentAtWork,
  ICellRecord,
  IDocument,
  IStaleness,
  IWaitingFor,
  RecordPeople
} from '../tokens';
import {
  cellName,
  durationText,
  nameOf,
  personName,
  plainName,
  quoted,
  shortText,
  statusWord,
  typeText
} from './wording';

/** The name of a file, as it can stand in a sentence. */
export function fileName(path: string): string {
  return shortText(plainName(PathExt.basename(path)));
}

/** The first line of a source that says something. */
export function firstLine(source: string): string {
  const line = source.split('\n').find(each => each.trim() !== '') ?? '';
  return shortText(plainName(line.trim()));
}

/** Why a cell is out of date, or may be. */
export function staleText(
  staleness: IStaleness,
  trans: TranslationBundle
): string {
  const { cause, certain, names } = staleness;
  const cell = cellName(staleness, trans);
  const told = plainName(names.join(', '));
  const why =
    cause === 'edited'
      ? trans.__('the code was edited since it ran')
      : cause === 'changed'
        ? trans.__('%1 changed %2', cell, told)
        : trans.__('%1 may have changed anything: %2', cell, told);
  return certain
    ? trans.__('Out of date: %1', why)
    : trans.__('May be out of date: %1', why);
}

/** What an execution waits for. */
export function waitingText(
  waiting: IWaitingFor,
  trans: TranslationBundle
): string {
  switch (waiting.who) {
    case 'agent':
      return trans.__(
        'Waiting for agent %1',
        quoted(shortText(waiting.agent ?? ''))
      );
    case 'person':
      return trans.__('Waiting for a running cell');
    case 'approval':
      return trans.__('Needs approval');
    case 'pause':
      return trans.__('Waiting until agents are resumed');
    default:
      return trans.__('Waiting for the kernel');
  }
}

/** How long a cell ran, or has been running. */
export function cellDuration(
  { started_at, finished_at, status }: ICellRecord,
  now: number
): string {
  if (!started_at) {
    return '';
  }
  if (finished_at) {
    const seconds = (Date.parse(finished_at) - Date.parse(started_at)) / 1000;
    return durationText(Math.max(0, seconds));
  }
  const seconds = Math.floor((now - Date.parse(started_at)) / 1000);
  return isFinal(status) || seconds < 1 ? '' : durationText(seconds);
}

/** What of a cell's outputs is hidden. */
export function heldText(
  held: readonly string[],
  trans: TranslationBundle
): string {
  const kinds = new Set(held.map(each => typeText([each], trans)));
  const what = Array.from(kinds).join(', ') || trans.__('Output');
  return trans.__('%1 hidden', what);
}

/** What a person has done to a cell, before or since it ran. */
export function changedText(
  { started_at, was_edited }: ICellRecord,
  edited: boolean,
  runAgain: boolean,
  trans: TranslationBundle
): string {
  if (runAgain) {
    return trans.__('Run again since');
  }
  if (!edited) {
    return was_edited ? trans.__('Edited before it ran') : '';
  }
  return started_at
    ? trans.__('Differs from what ran')
    : trans.__('Edited since');
}

/** Whose a cell is. */
export function ownerText(
  { agent, username }: ICellRecord,
  trans: TranslationBundle
): string {
  const name = nameOf(agent);
  const person = shortText(personName(username));
  return person ? trans.__('%1 for %2', name, person) : name;
}

/** What an agent does now, in a few words. */
export function doingText(
  { current }: Pick<IAgentAtWork, 'current'>,
  trans: TranslationBundle
): string {
  if (!current) {
    return trans.__('Idle');
  }
  if (current.status === 'running') {
    return trans.__('Running %1', firstLine(current.source));
  }
  return current.status === 'queued' && current.waiting_for
    ? waitingText(current.waiting_for, trans)
    : statusWord(current.status, trans);
}

/** What is recorded of what people run in a kernel with an agent. */
export function recordPeopleText(
  recorded: RecordPeople,
  trans: TranslationBundle
): string {
  switch (recorded) {
    case 'source':
      return trans.__(
        'The history records the source of the code that you run here.'
      );
    case 'outputs':
      return trans.__(
        'The history records the source and outputs of the code that you run here.'
      );
    default:
      return '';
  }
}

/** That an execution has no cell in the notebook, and why. */
export function notWrittenText(
  { path, reason }: Pick<IDocument, 'path' | 'reason'>,
  trans: TranslationBundle
): string {
  const text = trans.__('No cell written to %1', plainName(path));
  return reason ? `${text}: ${plainName(reason)}` : text;
}
