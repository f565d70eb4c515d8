/** The edits that a session's agent has proposed, and what became of them. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';
import * as React from 'react';
import { CommandIDs } from '../tokens';
import type { IProposedEdit } from '../tokens';
import { firstLine } from '../ui/notebookwording';
import { createSessionPart } from './facts';
import type { IProps } from './facts';

/** A line for each edit, which leads to its cell; nothing if there are none. */
export function createEdits(props: IProps): Widget {
  return createSessionPart(props.model, 'jp-AgentExecEdits', () => (
    <Edits {...props} />
  ));
}

function Edits({ execute, model, trans }: IProps): JSX.Element | null {
  const { edits, executions, session } = model;
  if (edits.length === 0) {
    return null;
  }
  const counts = new Map<string, number>();
  edits
    .map(({ status }) => statusText(status, trans))
    .forEach(each => counts.set(each, (counts.get(each) ?? 0) + 1));
  const told = Array.from(counts, ([word, count]) => `${word}: ${count}`);
  const goTo = (cell_id: string) =>
    void execute(CommandIDs.goToCell, { path: session?.path, cell_id });
  return (
    <details open={executions.length === 0}>
      <summary>
        {trans.__('Proposed changes')}
        {' · '}
        {told.join(' · ')}
      </summary>
      <ul>
        {edits.map(edit => (
          <li key={edit.id}>
            {statusText(edit.status, trans)}
            {' · '}
            <button
              type="button"
              className="jp-AgentExec-link"
              title={edit.reason ?? undefined}
              onClick={() => goTo(edit.cell_id)}
            >
              {kindText(edit, trans)}{' '}
              <code dir="ltr">
                {firstLine((edit.after ?? edit.before)?.source ?? '')}
              </code>
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}

function statusText(
  status: IProposedEdit['status'],
  trans: TranslationBundle
): string {
  return {
    open: trans.__('Proposed'),
    kept: trans.__('Kept'),
    rejected: trans.__('Rejected'),
    obsolete: trans.__('No longer fits'),
    replaced: trans.__('Replaced'),
    undone: trans.__('Undone')
  }[status];
}

function kindText({ kind }: IProposedEdit, trans: TranslationBundle): string {
  return {
    insert: trans.__('New cell'),
    change: trans.__('Change'),
    move: trans.__('Move'),
    delete: trans.__('Delete'),
    clear_outputs: trans.__('Clear outputs')
  }[kind];
}
