/** One execution as a cell that can be read. */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Panel, Widget } from '@lumino/widgets';
import { isFinal, isProposed } from '../tokens';
import type {
  Execute,
  IAgentExecApi,
  IExecutionModel,
  IJournalEvent,
  ISessionModel
} from '../tokens';
import { CellHeader } from './cellheader';
import { ChangesWidget } from './changes';
import { element, linkButton } from './elements';
import type { Highlight } from './highlight';
import { InputView } from './inputview';
import { OutputsWidget } from './outputs';
import { cellName, afterText } from './wording';

/** Lines above which a source is folded. */
const FOLDED_LINES = 24;

/** Makes a part of a cell; the part follows the model, and may be hidden. */
export type CellPart = (model: IExecutionModel) => Widget;

/** Makes something that stands below a session's facts. */
export type SessionPart = (model: ISessionModel) => Widget;

/** What others add to a session and its cells. */
export interface ICellParts {
  /** At the head of the session, below what is known of it. */
  session: readonly SessionPart[];
  /** At the end of a cell's header: buttons. */
  actions: readonly CellPart[];
  /** Between the header and the source. */
  above: readonly CellPart[];
  /** After the outputs. */
  below: readonly CellPart[];
}

/** A cell: what ran, how it went, what came out, and what came after it. */
export class CellWidget extends Panel {
  constructor(private readonly _options: CellWidget.IOptions) {
    super();
    const { model, trans } = _options;
    this.addClass('jp-AgentExecCell');
    const { above, actions, below } = _options.parts;
    this._header = new CellHeader(
      trans,
      _options.execute,
      actions.map(createPart => createPart(model))
    );
    const outputs = new OutputsWidget(_options);
    this.addWidget(this._header);
    this._addParts(above);
    this._source.addClass('jp-AgentExecSource');
    this.addWidget(this._source);
    this.addWidget(outputs);
    this.addWidget(new InputView(_options));
    this.addWidget(new ChangesWidget(model, trans));
    this._addParts(below);
    this._after.addClass('jp-AgentExecCell-after');
    this.addWidget(this._after);
    this.node.setAttribute('role', 'article');
    model.changed.connect(this._onChanged, this);
    this._render();
  }

  /** What is shown. */
  get model(): IExecutionModel {
    return this._options.model;
  }

  /** Its number in the session. */
  get seq(): number {
    return this.model.execution.seq;
  }

  /** Show how long it has been running. */
  tick(): void {
    if (!isFinal(this.model.execution.status)) {
      this._header.tick(this.model.execution, this._options.now());
    }
  }

  /** Say what happened between this cell and the next. */
  setEvents(events: readonly IJournalEvent[]): void {
    const text = afterText(events, this._options.trans);
    this._after.node.textContent = text;
    this._after.setHidden(text === '');
  }

  private _onChanged(_: IExecutionModel, what: 'status' | 'outputs'): void {
    if (what === 'status') {
      this._render();
    }
  }

  private _render(): void {
    const { execution } = this.model;
    const { trans } = this._options;
    this.node.setAttribute('aria-label', cellName(execution, trans));
    this.node.dataset.status = execution.status;
    this.node.setAttribute('aria-busy', String(execution.status === 'running'));
    this._header.render(execution, this._options.now());
    this._source.setHidden(isProposed(execution)); // its notebook shows it
    if (execution.source !== this._shown) {
      this._renderSource();
    }
  }

  private _addParts(parts: readonly CellPart[]): void {
    parts.forEach(createPart => this.addWidget(createPart(this.model)));
  }

  /** Show the source; a person may change it while it asks for approval. */
  private _renderSource(): void {
    const { model, trans, highlight } = this._options;
    const { source, kernel, lookalikes } = model.execution;
    this._shown = source;
    const pre = element('pre', '', source);
    this._source.node.replaceChildren(pre);
    const kernelName = kernel?.name ?? this._options.kernelName;
    void highlight(source, lookalikes, kernelName, pre);
    const lines = source.split('\n').length;
    if (lines > FOLDED_LINES) {
      this._source.node.append(createFold(pre, lines, trans));
    }
  }

  private readonly _header: CellHeader;
  private readonly _after = new Widget();
  private _shown: string | null = null;
  private readonly _source = new Widget();
}

/** A button that folds and unfolds a long source. */
function createFold(
  pre: HTMLElement,
  lines: number,
  trans: TranslationBundle
): HTMLElement {
  const button = linkButton('', () => {
    fold(!pre.classList.contains('jp-mod-folded'));
  });
  const fold = (folded: boolean) => {
    pre.classList.toggle('jp-mod-folded', folded);
    button.setAttribute('aria-expanded', String(!folded));
    button.textContent = folded
      ? trans.__('Show all %1 lines', lines)
      : trans.__('Show less');
  };
  fold(true);
  return button;
}

/** The options of a cell. */
export namespace CellWidget {
  /** What it is made of. */
  export interface IOptions {
    model: IExecutionModel;
    api: IAgentExecApi;
    /** The kernel whose language the source has, if it did not run yet. */
    kernelName: string | null;
    rendermime: IRenderMimeRegistry;
    trans: TranslationBundle;
    execute: Execute;
    highlight: Highlight;
    parts: ICellParts;
    /** The server's time, in milliseconds. */
    now: () => number;
    /** Tells a person that something they asked for failed. */
    onError: (error: unknown) => void;
  }
}
