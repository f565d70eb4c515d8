/** What code that needs approval did in a trial. */
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IOutput } from '@jupyterlab/nbformat';
import { Panel, Widget } from '@lumino/widgets';
import type { IAgentExecApi, IPreview } from '../tokens';
import { createLines, wordsOfTrial } from '../ui/changes';
import { element } from '../ui/elements';
import { refusedText } from './approvalwording';
import { plainName } from '../ui/wording';

/** Shows the trial of one request, and looks again while the trial goes on. */
export class PreviewView extends Panel {
  constructor(private readonly _options: PreviewView.IOptions) {
    super();
    this.addClass('jp-AgentExecPreview');
    this.node.setAttribute('role', 'group');
    this._state.setAttribute('role', 'status');
    this.addWidget(new Widget({ node: this._state }));
    this._render();
  }

  /** Look what the trial showed, unless that is known; true if it is now. */
  async look(executionId: string): Promise<boolean> {
    if (this._preview.status !== 'pending') {
      return false;
    }
    try {
      const preview = await this._options.api.getPreview(executionId);
      if (!this.isDisposed && this._preview.status === 'pending') {
        this._preview = preview;
        this._render();
        return preview.status !== 'pending';
      }
    } catch {
      // It does not ask any more, or the server is away: the request says so.
    }
    return false;
  }

  /** The code or its kernel is another one now. */
  reset(): void {
    this._preview = PENDING;
    this._render();
  }

  /** Whether the user has edited the code: a trial tells nothing of that. */
  get isEdited(): boolean {
    return this._isEdited;
  }

  set isEdited(value: boolean) {
    if (this._isEdited !== value) {
      this._isEdited = value;
      this._render();
    }
  }

  private _render(): void {
    const { trans } = this._options;
    const preview = this._isEdited ? PENDING : this._preview;
    this._area?.dispose();
    this._area = null;
    const state = this._isEdited
      ? trans.__('No trial of the code as you have edited it.')
      : stateText(preview, trans);
    this._state.textContent = state;
    this.node.setAttribute('aria-label', state);
    this._told?.dispose();
    this._told = new Widget();
    this._told.node.append(
      ...(preview.seal?.refused ?? []).map(refusal =>
        element(
          'div',
          'jp-AgentExecPreview-refused',
          refusedText(refusal, trans)
        )
      ),
      ...(['pending', 'none'].includes(preview.status)
        ? []
        : createLines(preview.changes, trans, wordsOfTrial(trans)))
    );
    this.addWidget(this._told);
    this._showOutputs(preview.outputs);
  }

  /** As all outputs of agents are shown: nothing in them runs or loads. */
  private _showOutputs(outputs: readonly object[]): void {
    if (outputs.length === 0) {
      return;
    }
    const { rendermime } = this._options;
    const model = new OutputAreaModel({
      trusted: false,
      values: outputs as IOutput[]
    });
    const area = new SimplifiedOutputArea({ model, rendermime });
    area.disposed.connect(() => model.dispose());
    this.addWidget((this._area = area));
  }

  private _area: SimplifiedOutputArea | null = null;
  private _isEdited = false;
  private _preview: IPreview = PENDING;
  private readonly _state = element('div', 'jp-AgentExecPreview-state');
  private _told: Widget | null = null;
}

/** How far the trial is, or how it ended. */
function stateText(preview: IPreview, trans: TranslationBundle): string {
  const { error, omitted, reason, status } = preview;
  const why = reason ? [plainName(reason)] : [];
  switch (status) {
    case 'pending':
      return trans.__('Trial: waits, or runs in a copy of the kernel');
    case 'none':
      return [trans.__('No trial of this code.'), ...why].join(' ');
    default:
      return [
        trans.__(
          'Trial: what the code did in a copy of the kernel. Nothing has changed yet.'
        ),
        ...(status === 'error'
          ? [trans.__('It failed: %1', plainName(error?.ename ?? '?'))]
          : []),
        ...why,
        ...(omitted.bytes + omitted.outputs > 0
          ? [trans.__('Some output is left out.')]
          : [])
      ].join(' ');
  }
}

const PENDING: IPreview = {
  status: 'pending',
  reason: null,
  outputs: [],
  omitted: { bytes: 0, lines: 0, outputs: 0, unknown: false },
  error: null,
  changes: null,
  seal: null
};

/** The options of a view. */
export namespace PreviewView {
  /** What it is made of. */
  export interface IOptions {
    api: Pick<IAgentExecApi, 'getPreview'>;
    /** Renders only what is harmless. */
    rendermime: IRenderMimeRegistry;
    trans: TranslationBundle;
  }
}
