/** What a cell of the panel shows of an execution besides source and outputs. */
import type { CodeCell } from '@jupyterlab/cells';
import { Panel } from '@lumino/widgets';
import type { PanelLayout } from '@lumino/widgets';
import { isFinal, isProposed } from '../tokens';
import type { IExecutionModel } from '../tokens';
import { ApprovalRecord } from './approvalrecord';
import { ApprovalSlot } from '../widgets/approvalslot';
import { ChangesWidget } from '../widgets/changes';
import { InputView } from './inputview';
import { CellNotes, LaterNote, OmittedNote } from './cellnotes';
import type { SessionNotebook } from './notebook';

/** Add to a cell, once it is drawn, what is above its input and below its outputs. */
export function addDetails(
  cell: CodeCell,
  model: IExecutionModel,
  options: SessionNotebook.IOptions
): void {
  const { api, approvals, execute, session, trans } = options;
  const { execution } = model;
  const layout = cell.layout as PanelLayout;
  const input = layout.widgets.findIndex(each =>
    each.hasClass('jp-Cell-inputWrapper')
  );
  // A proposal is decided in its notebook.
  const isAsking = !isFinal(execution.status) && !isProposed(execution);
  const above = createDetails();
  above.addWidget(new CellNotes(model, execute, trans));
  if (isAsking) {
    above.addWidget(new ApprovalSlot(execution.id, approvals));
  }
  above.addWidget(new ApprovalRecord(model, trans));
  layout.insertWidget(input, above);
  const below = createDetails();
  below.addWidget(new OmittedNote(model, execute, trans));
  below.addWidget(new InputView({ api, model, trans }));
  below.addWidget(new ChangesWidget(model, trans));
  below.addWidget(new LaterNote(session, execution.seq, trans));
  layout.addWidget(below);
}

function createDetails(): Panel {
  const panel = new Panel();
  panel.addClass('jp-AgentExecDetails');
  return panel;
}
