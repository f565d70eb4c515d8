/** What a cell of a session shows of an execution besides source and outputs. */
import type { CodeCell } from '@jupyterlab/cells';
import { Panel } from '@lumino/widgets';
import type { PanelLayout } from '@lumino/widgets';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandIDs, isFinal, isProposed } from '../tokens';
import type {
  Execute,
  IAgentExecApi,
  IDocument,
  IExecution,
  IExecutionModel,
  ISessionModel
} from '../tokens';
import type { ApprovalView } from '../approvals/approval';
import { ApprovalSlot } from '../approvals/approvalslot';
import { outcomeText } from '../approvals/approvalwording';
import { InputView } from '../approvals/inputview';
import { createChanges } from '../ui/changes';
import { Details, Fold } from '../ui/details';
import { element, linkButton } from '../ui/elements';
import { notWrittenText } from '../ui/notebookwording';
import { SourceEditor } from '../ui/sourceeditor';
import { commentText } from '../review/reviewwording';
import { afterText, executionNotes, plainName, sizeText } from '../ui/wording';

/** What is needed to show an execution, and to decide about it. */
export interface ICellOptions {
  session: ISessionModel;
  api: IAgentExecApi;
  approvals: ApprovalView.IOptions;
  editors: IEditorServices;
  execute: Execute;
  trans: TranslationBundle;
}

/** Add to a cell, once it is drawn, what is above its input and below its outputs. */
export function addDetails(
  cell: CodeCell,
  model: IExecutionModel,
  options: ICellOptions
): void {
  const { api, approvals, session, trans } = options;
  const { id, seq, status } = model.execution;
  const layout = cell.layout as PanelLayout;
  const input = layout.widgets.findIndex(each =>
    each.hasClass('jp-Cell-inputWrapper')
  );
  const above = createPanel();
  above.addWidget(new Details(model, () => notes(model.execution, options)));
  // A proposal is decided in its notebook.
  if (!isFinal(status) && !isProposed(model.execution)) {
    above.addWidget(new ApprovalSlot(id, approvals));
  }
  above.addWidget(new Decision(model, cell.model.mimeType, options));
  layout.insertWidget(input, above);
  const below = createPanel();
  below.addWidget(new Details(model, () => omitted(model.execution, options)));
  below.addWidget(new InputView({ api, model, trans }));
  const changes = new Details(model, () =>
    createChanges(model.execution, trans)
  );
  changes.addClass('jp-AgentExecChanges');
  below.addWidget(changes);
  below.addWidget(
    new Details(session, () => {
      const text = afterText(session.eventsAfter(seq), trans);
      return text ? [element('div', '', text)] : [];
    })
  );
  layout.addWidget(below);
}

function createPanel(): Panel {
  const panel = new Panel();
  panel.addClass('jp-AgentExecDetails');
  return panel;
}

/** How an execution came about or ended, and where its cell is in a notebook. */
function notes(execution: IExecution, options: ICellOptions): HTMLElement[] {
  const { document: placed, review } = execution;
  const place = placed && createPlace(execution.id, placed, options);
  return [
    ...executionNotes(execution, options.trans),
    ...(review ? [commentText(review)] : [])
  ]
    .filter(Boolean)
    .map((note): HTMLElement => element('div', '', note))
    .concat(place ?? []);
}

/** The way to an execution's cell in a notebook, or why there is none. */
function createPlace(
  id: string,
  placed: IDocument,
  { execute, trans }: ICellOptions
): HTMLElement | null {
  const { cell_id, path, status } = placed;
  if (status === 'not_written') {
    return element('div', '', notWrittenText(placed, trans));
  }
  const isOpen = status === 'proposed';
  if ((!cell_id && !isOpen) || status === 'discarded') {
    return null; // it is being written, or an earlier version removed it
  }
  const command = isOpen ? CommandIDs.goToProposal : CommandIDs.goToCell;
  const button = linkButton(trans.__('Go to the cell'), () => {
    void execute(command, { path, cell_id, execution_id: id });
  });
  button.title = plainName(path);
  return button;
}

/** What was decided before it ran, and what the user changed of it. */
class Decision extends Panel {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _mimeType: string,
    private readonly _options: ICellOptions
  ) {
    super();
    this.addClass('jp-AgentExecApprovalRecord');
    this.addWidget(
      new Details(_model, () => {
        const { execution } = _model;
        const text =
          execution.approval && outcomeText(execution, _options.trans);
        return text ? [element('div', '', text)] : [];
      })
    );
    _model.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  private _onChanged(): void {
    const { approval, lookalikes, source } = this._model.execution;
    const before = approval?.asked_source ?? null;
    if (before === null || this.widgets.length > 1) {
      return;
    }
    const { editors, trans } = this._options;
    this.addWidget(
      new Fold(
        trans.__('Show what was changed'),
        () =>
          new SourceEditor({
            factory: editors.factoryService.newInlineEditor,
            mimeType: this._mimeType,
            source,
            before,
            showsDifference: true,
            lookalikes,
            trans
          })
      )
    );
  }
}

/** How much of the output is missing, and the way to what the server has. */
function omitted(
  { id, omitted, outputs_complete }: IExecution,
  { execute, trans }: ICellOptions
): HTMLElement[] {
  const { bytes, lines, outputs, unknown } = omitted;
  const isLost = bytes + outputs > 0;
  const line = element('div', '');
  if (isLost) {
    const parts = [
      trans.__('%1 left out', sizeText(bytes)),
      lines > 0 && trans._n('%1 line', '%1 lines', lines),
      outputs > 0 && trans._n('%1 output', '%1 outputs', outputs)
    ].filter(Boolean);
    const open = () => void execute(CommandIDs.openText, { execution_id: id });
    const link = linkButton(trans.__('Open Full Output'), open);
    line.append(`${parts.join(', ')}. `, link, ' ');
  }
  if (unknown || !(isLost || outputs_complete)) {
    line.append(trans.__('Some output may be missing.'));
  }
  return line.hasChildNodes() ? [line] : [];
}
