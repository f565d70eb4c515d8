/** What code that needs approval did in a trial. */
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IOutput } from '@jupyterlab/nbformat';
import { Panel, Widget } from '@lumino/widgets';
import type { IAgentExecApi, IPreview } from '../tokens';
import { createLines } from '../ui/changes';
import { element } from '../ui/elements';
import { linesWith } from '../ui/sourcetext';
import { refusedText } from './approvalwording';
import { plainName } from '../ui/wording';

/** Shows the trial of one request, and looks again while the trial goes on. */
export class PreviewView extends Panel {
  constructor(
    private readonly _api: Pick<IAgentExecApi, 'getPreview'>,
    private readonly _options: PreviewView.IOptions
  ) {
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
      const preview = await this._api.getPreview(executionId);
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
    const { source, trans } = this._options;
    const preview = this._isEdited ? PENDING : this._preview;
    const state = this._isEdited
      ? trans.__('No trial of this code.')
      : stateText(preview, trans);
    this._state.textContent = state;
    this.node.setAttribute('aria-label', state);
    this._told?.dispose();
    this._told = new Panel();
    this.addWidget(this._told);
    const facts = element('div', '');
    facts.append(
      ...(preview.seal?.refused ?? []).map(refusal => {
        const line = element('div', 'jp-AgentExecPreview-refused');
        const text = element('span', '', refusedText(refusal, trans));
        // The copy says it, so it may be no line of the code.
        const lines = linesWith(source()).filter(n => n === refusal.line);
        line.append(this._createChip(text, lines));
        return line;
      }),
      ...(['pending', 'none'].includes(preview.status)
        ? []
        : createLines(preview.changes, true, trans, (item, name) =>
            this._createChip(item, linesWith(source(), name))
          ))
    );
    this._told.addWidget(new Widget({ node: facts }));
    this._renderFrame(this._told, preview);
  }

  /** Have what the trial showed lead to the lines of the code that are about it, if there are any. */
  private _createChip(item: HTMLElement, lines: number[]): HTMLElement {
    if (lines.length === 0) {
      return item;
    }
    const { highlight, trans } = this._options;
    const chip = element('button', 'jp-AgentExecPreview-chip');
    chip.type = 'button';
    const where = trans._n(
      'Line %2',
      'Lines %2',
      lines.length,
      lines.join(', ')
    );
    chip.append(item, ' ', element('small', '', where));
    for (const [begin, end] of [
      ['mouseenter', 'mouseleave'],
      ['focus', 'blur']
    ]) {
      chip.addEventListener(begin, () => highlight(lines));
      chip.addEventListener(end, () => highlight([]));
    }
    chip.addEventListener('click', () => highlight(lines, true));
    return chip;
  }

  /**
   * Show what came out of the copy in a frame that holds nothing else.
   *
   * It is shown as all outputs of agents: nothing in it runs or loads.
   */
  private _renderFrame(
    place: Panel,
    { error, outputs, reason, status }: IPreview
  ): void {
    const words = [error?.ename, reason].flatMap(each => each || []);
    if (words.length + outputs.length === 0) {
      return;
    }
    const { rendermime, trans } = this._options;
    const name =
      status === 'none'
        ? trans.__('Why:')
        : trans.__('What the code printed, in its own words:');
    const frame = new Panel();
    frame.addClass('jp-AgentExecPreview-frame');
    frame.node.tabIndex = 0; // it may scroll
    frame.node.setAttribute('role', 'group');
    frame.node.setAttribute('aria-label', name);
    for (const text of words) {
      frame.addWidget(
        new Widget({ node: element('div', '', plainName(text)) })
      );
    }
    const model = new OutputAreaModel({
      trusted: false,
      values: outputs as object[] as IOutput[]
    });
    const area = new SimplifiedOutputArea({ model, rendermime });
    area.disposed.connect(() => model.dispose());
    frame.addWidget(area);
    const title = element('div', 'jp-AgentExecPreview-state', name);
    place.addWidget(new Widget({ node: title }));
    place.addWidget(frame);
  }

  private _isEdited = false;
  private _preview: IPreview = PENDING;
  private readonly _state = element('div', 'jp-AgentExecPreview-state');
  private _told: Panel | null = null;
}

/** How far the trial is, or how it ended: never in words that came out of it. */
function stateText(
  { omitted, status }: IPreview,
  trans: TranslationBundle
): string {
  switch (status) {
    case 'pending':
      return trans.__('Trial: waits, or runs in a copy of the kernel');
    case 'none':
      return trans.__('No trial of this code.');
    default:
      return [
        trans.__(
          'Trial: what the code did in a copy of the kernel. Nothing has changed yet.'
        ),
        ...(status === 'error' ? [trans.__('It failed.')] : []),
        ...(status === 'timed_out' ? [trans.__('It took too long.')] : []),
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
    /** Renders only what is harmless. */
    rendermime: IRenderMimeRegistry;
    /** Marks lines of the code, from 1, and may bring them into view. */
    highlight: (lines: readonly number[], isSought?: boolean) => void;
    /** The code that was tried. */
    source: () => string;
    trans: TranslationBundle;
  }
}
