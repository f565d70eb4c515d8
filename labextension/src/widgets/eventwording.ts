/** How entries between cells are said to a user. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IJournalEvent } from '../tokens';
import { momentText, plainName, reasonText, shortText } from './wording';

/** Characters of an entry's own text that are shown. */
const LONGEST = 300;

/**
 * What happened, in a few words; null for what cells and their notebook show,
 * and for what only the record needs.
 */
export function eventWord(
  type: string,
  trans: TranslationBundle
): string | null {
  const words: Partial<Record<string, string>> = {
    kernel_started: trans.__('Kernel started'),
    kernel_ended: trans.__('Kernel ended'),
    interrupted: trans.__('Interrupted'),
    recovered: trans.__('Found unfinished after a server restart'),
    late_output: trans.__('Output arrived after a cell ended'),
    approval_granted: trans.__('Everything approved'),
    agents_paused: trans.__('Agents paused'),
    agents_resumed: trans.__('Agents resumed'),
    policy_set: trans.__('Approval policy changed'),
    reviewed: trans.__('Reviewed'),
    person_ran: trans.__('Somebody else ran code in this kernel'),
    notebook_created: trans.__('Notebook created'),
    notebook_moved: trans.__('Notebook moved'),
    notebook_edit_refused: trans.__('Notebook edit refused'),
    notebook_edited: trans.__('Notebook edited'),
    edits_proposed: trans.__('Edits proposed'),
    edits_decided: trans.__('Decision about proposed edits'),
    file_uploaded: trans.__('File uploaded'),
    file_deleted: trans.__('File deleted')
  };
  return words[type] ?? null;
}

/** What an entry says itself: a reason, a comment, a path. */
export function eventDetail(
  { text, type }: IJournalEvent,
  trans: TranslationBundle
): string {
  if (text === null || text === 'asked') {
    return '';
  }
  if (type === 'approval_granted') {
    return trans.__('until %1', momentText(text, Date.now()));
  }
  if (type === 'reviewed') {
    // The record's word for a verdict is not the one that people read.
    return shortText(plainName(text.replace(/^approved(: )?/, '')));
  }
  const isReason = ['kernel_started', 'interrupted'].includes(type);
  const known = isReason ? reasonText(text, trans) : null;
  return known ?? shortText(plainName(text), LONGEST);
}
