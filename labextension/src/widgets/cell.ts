/** One execution as a cell that can be read. */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Panel, Widget } from '@lumino/widgets';
import { isFinal } from '../tokens';
import type { Execute, IExecutionModel } from '../tokens';
import { cellName } from './wording';
import { CellHeader } from './cellheader';
import type { Highlight } from './highlight';
import { OutputsWidget } from './outputs';

/** Lines above which a source is folded. */
const FOLDED_LINES = 24;

/** A cell: what ran, how it went, what came out. */
export class CellWidget extends Panel {
  constructor(private readonly _options: CellWidget.IOptions) {
    super();
    const { model, trans } = _options;
    this.addClass('jp-AgentExecCell');
    this._header = new CellHeader(trans, _options.execute);
    const outputs = new OutputsWidget(_options);
    this.addWidget(this._header);
    this.addWidget(this._createSource());
    this.addWidget(outputs);
    this.node.setAttribute('role', 'article');
    this.node.setAttribute('aria-posinset', String(model.execution.seq));
    this.node.tabIndex = -1;
    model.changed.connect(this._onChanged, this);
    this._render();
  }

  /** What is shown. */
  get model(): IExecutionModel {
    return this._options.model;
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._options.model.changed.disconnect(this._onChanged, this);
      super.dispose();
    }
  }

  /** Show how long it has been running. */
  tick(): void {
    if (!isFinal(this.model.execution.status)) {
      this._header.tick(this.model.execution, this._options.now());
    }
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
  }

  private _createSource(): Widget {
    const { model, trans, highlight } = this._options;
    const { source, kernel } = model.execution;
    const widget = new Widget();
    widget.addClass('jp-AgentExecSource');
    const pre = document.createElement('pre');
    pre.textContent = source;
    widget.node.append(pre);
    void highlight(source, kernel?.name ?? this._options.kernelName, pre);
    const lines = source.split('\n').length;
    if (lines > FOLDED_LINES) {
      widget.node.append(createFold(pre, lines, trans));
    }
    return widget;
  }

  private readonly _header: CellHeader;
}

/** A button that folds and unfolds a long source. */
function createFold(
  pre: HTMLElement,
  lines: number,
  trans: TranslationBundle
): HTMLElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'jp-AgentExec-link';
  const fold = (folded: boolean) => {
    pre.classList.toggle('jp-mod-folded', folded);
    button.setAttribute('aria-expanded', String(!folded));
    button.textContent = folded
      ? trans.__('Show all %1 lines', lines)
      : trans.__('Show fewer lines');
  };
  button.addEventListener('click', () => {
    fold(!pre.classList.contains('jp-mod-folded'));
  });
  fold(true);
  return button;
}

/** The options of a cell. */
export namespace CellWidget {
  /** What it is made of. */
  export interface IOptions {
    model: IExecutionModel;
    /** The kernel whose language the source has, if it did not run yet. */
    kernelName: string | null;
    rendermime: IRenderMimeRegistry;
    trans: TranslationBundle;
    execute: Execute;
    highlight: Highlight;
    /** The server's time, in milliseconds. */
    now: () => number;
  }
}
