/** How entries between cells are said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IJournalEvent } from '../tokens';
import { plainName, shortText } from './notebookwording';
import { momentText } from './wording';

/** Characters of an entry's own text that are shown. */
const LONGEST = 300;

/** What happened, in a few words. */
export function eventWord(type: string, trans: TranslationBundle): string {
  switch (type) {
    case 'opened':
      return trans.__('Session opened');
    case 'closed':
      return trans.__('Session closed');
    case 'kernel_started':
      return trans.__('Kernel started');
    case 'kernel_ended':
      return trans.__('Kernel ended');
    case 'interrupted':
      return trans.__('Interrupted');
    case 'input_asked':
      return trans.__('Input requested');
    case 'input_given':
      return trans.__('Input sent');
    case 'recovered':
      return trans.__('Found unfinished after a server restart');
    case 'late_output':
      return trans.__('Output arrived after a cell ended');
    case 'display_updated':
      return trans.__('An earlier output was updated');
    default:
      return (
        approvalWord(type, trans) ??
        notebookWord(type, trans) ??
        trans.__('Recorded: %1', shortText(plainName(type.replace(/_/g, ' '))))
      );
  }
}

function approvalWord(type: string, trans: TranslationBundle): string | null {
  switch (type) {
    case 'approval_asked':
      return trans.__('Approval requested');
    case 'approved':
      return trans.__('Approved');
    case 'rejected':
      return trans.__('Rejected');
    case 'approval_granted':
      return trans.__('Everything approved');
    case 'agents_paused':
      return trans.__('Agents paused');
    case 'agents_resumed':
      return trans.__('Agents resumed');
    case 'policy_set':
      return trans.__('Approval policy changed');
    case 'reviewed':
      return trans.__('Reviewed');
    default:
      return null;
  }
}

function notebookWord(type: string, trans: TranslationBundle): string | null {
  switch (type) {
    case 'person_ran':
      return trans.__('Somebody else ran code in this kernel');
    case 'kernel_inspected':
      return trans.__('Completions or documentation requested');
    case 'notebook_created':
      return trans.__('Notebook created');
    case 'notebook_moved':
      return trans.__('Notebook moved');
    case 'notebook_edit_asked':
      return trans.__('Notebook edit requested');
    case 'notebook_edit_refused':
      return trans.__('Notebook edit refused');
    case 'notebook_edited':
      return trans.__('Notebook edited');
    case 'edits_proposed':
      return trans.__('Edits proposed');
    case 'edits_decided':
      return trans.__('Decision about proposed edits');
    case 'outputs_accepted':
      return trans.__('Outputs accepted');
    case 'outputs_shown':
      return trans.__('Always show outputs');
    case 'outputs_discarded':
      return trans.__('Outputs discarded');
    case 'outputs_restored':
      return trans.__('Outputs restored');
    case 'cell_written':
      return trans.__('Cell written to the notebook');
    case 'cell_discarded':
      return trans.__('Cell discarded');
    case 'cell_restored':
      return trans.__('Cell restored');
    case 'files_written':
      return trans.__('Files written');
    case 'file_uploaded':
      return trans.__('File uploaded');
    case 'file_deleted':
      return trans.__('File deleted');
    case 'file_unchanged':
      return trans.__('File unchanged');
    default:
      return null;
  }
}

/** What an entry says itself: a reason, a comment, a path. */
export function eventDetail(
  { text, type }: IJournalEvent,
  trans: TranslationBundle
): string {
  if (type === 'approval_granted' && text !== null) {
    return trans.__('until %1', momentText(text, Date.now()));
  }
  if (type === 'reviewed' && text !== null) {
    // The record's word for a verdict is not the one that people read.
    return shortText(plainName(text.replace(/^approved(: )?/, '')));
  }
  const known = text === null ? '' : reasonText(type, text, trans);
  if (known !== null) {
    return known;
  }
  const characters = Array.from(plainName(text ?? ''));
  return characters.length <= LONGEST
    ? characters.join('')
    : `${characters.slice(0, LONGEST - 1).join('')}…`;
}

/** What a reason means that the record names by a word; null for other texts. */
function reasonText(
  type: string,
  reason: string,
  trans: TranslationBundle
): string | null {
  switch (`${type} ${reason}`) {
    case 'interrupted asked':
    case 'closed closed':
      return '';
    case 'interrupted cancelled':
      return trans.__('the execution was cancelled');
    case 'interrupted timed_out':
      return trans.__('it timed out');
    case 'interrupted closing':
      return trans.__('the session was being closed');
    case 'closed idle':
      return trans.__('it was idle for too long');
    case 'closed init_failed':
      return trans.__('its setup code failed');
    case 'closed server_stopped':
      return trans.__('the server was stopped');
    case 'closed server_died':
      return trans.__('the server ended unexpectedly');
    case 'closed token_revoked':
      return trans.__('its agent token was revoked');
    case 'closed token_expired':
      return trans.__('its agent token has expired');
    case 'kernel_started died':
      return trans.__('the previous kernel died');
    case 'kernel_started restarted':
      return trans.__('it was restarted');
    case 'kernel_started interrupt_ignored':
      return trans.__('the previous kernel ignored an interrupt');
    case 'kernel_started culled':
      return trans.__('the previous kernel was idle for too long');
    case 'kernel_started shut_down':
      return trans.__('somebody shut down the previous kernel');
    case 'kernel_started changed':
      return trans.__('somebody selected a different kernel');
    default:
      return null;
  }
}
