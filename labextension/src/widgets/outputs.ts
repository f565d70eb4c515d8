/** The outputs of one execution. */
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type * as nbformat from '@jupyterlab/nbformat';
import { Panel, Widget } from '@lumino/widgets';
import { abridge } from '../model/abridge';
import { Coalescer } from '../model/coalescer';
import { CommandIDs } from '../tokens';
import type { Execute, IExecutionModel, ILeftOut } from '../tokens';
import { element, linkButton } from './elements';
import { leftOutOutput, withLeftOut } from './leftout';
import type { ILeftOutOptions } from './leftout';
import { sizeText } from './wording';

/** Milliseconds between two drawings of outputs that grow. */
const REST = 100;

/** Shows outputs as untrusted, long ones cut, with what was left out. */
export class OutputsWidget extends Panel {
  constructor(private readonly _options: OutputsWidget.IOptions) {
    super();
    this.addClass('jp-AgentExecOutputs');
    this._areaModel = new OutputAreaModel({ trusted: false });
    this._rendermime = withLeftOut(_options.rendermime, _options);
    this._area = new LabelledOutputArea({
      model: this._areaModel,
      rendermime: this._rendermime,
      imageLabel: _options.trans.__('Image output of the cell')
    });
    this._toggle = linkButton('', () => {
      this._showAll = !this._isExpanded;
      this._shown = [];
      _options.model.closeOutputs();
      this._draw();
    });
    this._toggle.setAttribute('aria-expanded', 'false');
    const footer = new Widget();
    footer.addClass('jp-AgentExecOutputs-footer');
    footer.node.append(this._toggle, this._omitted);
    this.addWidget(this._area);
    this.addWidget(footer);
    this._drawing = new Coalescer(async () => this._draw(), REST);
    _options.model.changed.connect(this._onChanged, this);
    this._draw();
    this._drawOmitted();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._drawing.dispose();
    super.dispose();
    this._areaModel.dispose();
  }

  private _onChanged(_: IExecutionModel, what: 'status' | 'outputs'): void {
    if (what === 'outputs') {
      this._drawing.request();
    } else {
      this._drawOmitted();
    }
  }

  /** Bring what is drawn in line with the model. */
  private _draw(): void {
    const { trans } = this._options;
    const outputs = this._outputs();
    const hadFocus = this.node.contains(document.activeElement);
    const marker = (length: number) =>
      trans.__('⋯ %1 hidden ⋯', sizeText(length));
    if (outputs.length < this._shown.length) {
      this._areaModel.clear();
      this._shown = [];
      this._hidden = [];
    }
    outputs.forEach((output, index) => {
      if (output === this._shown[index]) {
        return;
      }
      const cut = abridge(output, marker);
      const isWhole = this._options.model.opened.has(index);
      this._hidden[index] = isWhole ? 0 : cut.hidden;
      this._put(index, this._showAll || isWhole ? output : cut.output);
    });
    this._shown = outputs.slice();
    this.toggleClass('jp-mod-empty', outputs.length === 0);
    this._drawToggle();
    if (hadFocus) {
      this._keepFocus();
    }
  }

  /** The outputs, with others in place of those that were left out. */
  private _outputs(): readonly nbformat.IOutput[] {
    const { execution, opened, outputs } = this._options.model;
    const { left_out } = execution;
    const known = this._placeholders;
    if (left_out !== this._leftOut) {
      this._leftOut = left_out;
      known.clear();
    }
    const closed = new Set(
      left_out
        .filter(({ index }) => !opened.has(index))
        .map(({ index }) => index)
    );
    return outputs.map((output, index) => {
      if (!closed.has(index) || this._says(output)) {
        return output;
      }
      const placeholder = known.get(index) ?? leftOutOutput(index);
      known.set(index, placeholder);
      return placeholder;
    });
  }

  /** Whether something is there to show, though an image was left out. */
  private _says({ data }: nbformat.IOutput): boolean {
    const bundle = (data ?? {}) as nbformat.IMimeBundle;
    const preferred = this._rendermime.preferredMimeType(bundle, 'ensure');
    return preferred !== undefined && preferred !== 'text/plain';
  }

  /** The button with the focus may be gone: lead it to the next best. */
  private _keepFocus(): void {
    const active = document.activeElement;
    if (!active || active === this._toggle || !this.node.contains(active)) {
      const buttons = 'button:not([hidden])';
      this.node.querySelector<HTMLElement>(buttons)?.focus();
    }
  }

  private _put(index: number, output: nbformat.IOutput): void {
    if (index < this._areaModel.length) {
      this._areaModel.set(index, output);
    } else {
      this._areaModel.add(output);
    }
  }

  /** Whether more is shown than at first. */
  private get _isExpanded(): boolean {
    return this._showAll || this._options.model.opened.size > 0;
  }

  private _drawToggle(): void {
    const { trans } = this._options;
    const hidden = this._hidden.reduce((sum, each) => sum + each, 0);
    const isExpanded = this._isExpanded;
    this._toggle.hidden = hidden === 0 && !isExpanded;
    this._toggle.setAttribute('aria-expanded', String(isExpanded));
    this._toggle.textContent = isExpanded
      ? trans.__('Show less')
      : trans.__('Show all, %1 more', sizeText(hidden));
  }

  private _drawOmitted(): void {
    const { model, trans, execute } = this._options;
    const { id, omitted, outputs_complete } = model.execution;
    const lost = omitted.bytes + omitted.outputs > 0;
    const missing = trans.__('Some output may be missing.');
    this._omitted.replaceChildren();
    this._omitted.hidden = !lost && outputs_complete;
    if (!lost) {
      this._omitted.textContent = outputs_complete ? '' : missing;
      return;
    }
    const parts = [
      trans.__('%1 left out', sizeText(omitted.bytes)),
      omitted.lines > 0 &&
        trans._n('%1 line', '%1 lines', omitted.lines, omitted.lines),
      omitted.outputs > 0 &&
        trans._n('%1 output', '%1 outputs', omitted.outputs, omitted.outputs)
    ].filter(Boolean);
    const link = linkButton(trans.__('Open full output'), () => {
      void execute(CommandIDs.openText, { execution_id: id });
    });
    this._omitted.append(`${parts.join(', ')}. `, link);
    if (omitted.unknown) {
      this._omitted.append(` ${missing}`);
    }
  }

  private readonly _area: SimplifiedOutputArea;
  private readonly _areaModel: OutputAreaModel;
  private readonly _drawing: Coalescer;
  private readonly _omitted = element('div', 'jp-AgentExecOutputs-omitted');
  private readonly _placeholders = new Map<number, nbformat.IOutput>();
  private readonly _rendermime: IRenderMimeRegistry;
  private readonly _toggle: HTMLButtonElement;
  private _hidden: number[] = [];
  private _leftOut: readonly ILeftOut[] = [];
  private _showAll = false;
  private _shown: nbformat.IOutput[] = [];
}

/** An output area whose images have a text for those who do not see them. */
class LabelledOutputArea extends SimplifiedOutputArea {
  constructor(
    options: ConstructorParameters<typeof SimplifiedOutputArea>[0] & {
      imageLabel: string;
    }
  ) {
    super(options);
    this._imageLabel = options.imageLabel;
    this._observer = new MutationObserver(() => this._label());
    this._observer.observe(this.node, { childList: true, subtree: true });
    this._label();
  }

  override dispose(): void {
    this._observer.disconnect();
    super.dispose();
  }

  private _label(): void {
    this.node.querySelectorAll('img:not([alt])').forEach(image => {
      image.setAttribute('alt', this._imageLabel);
    });
  }

  private readonly _imageLabel: string;
  private readonly _observer: MutationObserver;
}

/** The options of an outputs widget. */
export namespace OutputsWidget {
  /** What it is made of. */
  export interface IOptions extends ILeftOutOptions {
    rendermime: IRenderMimeRegistry;
    execute: Execute;
  }
}
