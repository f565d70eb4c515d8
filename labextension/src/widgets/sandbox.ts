/** Active outputs, shown on demand in a frame without origin and network. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import { activeOutputs, outputText, sandboxDocument } from '../model/sandbox';
import type { IActiveOutput } from '../model/sandbox';
import type { IAgentExecApi, IExecutionModel } from '../tokens';
import type { CellPart } from './cell';
import { element, iconButton, linkButton } from './elements';
import { typeText } from './wording';

/** What is needed to show active outputs. */
interface IOptions {
  api: IAgentExecApi;
  trans: TranslationBundle;
  onError: (error: unknown) => void;
}

/** A part of the panel's cells: what opens active outputs. */
export function sandboxPart(options: IOptions): CellPart {
  return model => new Sandbox(model, options);
}

/** What stands there for an active output: a button, or what it has opened. */
interface IRow {
  output: IActiveOutput;
  node: HTMLElement;
}

/** A button for each active output; nothing of it is drawn before a click. */
class Sandbox extends Widget {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _options: IOptions
  ) {
    super();
    this.addClass('jp-AgentExecSandbox');
    _model.changed.connect(this._render, this);
    this._render();
  }

  /** Show a row for each; what is open stays open while others come. */
  private _render(): void {
    const { execution, outputs } = this._model;
    const active = activeOutputs(outputs, execution.left_out);
    const hadFocus = this.node.contains(document.activeElement);
    const rows = active.map((output): IRow => {
      const known = this._rows.find(each => isSame(each.output, output));
      return known ?? { output, node: this._createRow(output) };
    });
    this._rows
      .filter(each => !rows.includes(each))
      .forEach(({ node }) => node.remove());
    rows.forEach(({ node }, index) => {
      // A frame that is put in once more is loaded once more.
      if (this.node.children[index] !== node) {
        this.node.insertBefore(node, this.node.children[index] ?? null);
      }
    });
    this._rows = rows;
    this.setHidden(rows.length === 0);
    if (hadFocus && !this.node.contains(document.activeElement)) {
      this.node.querySelector('button')?.focus();
    }
  }

  private _createRow(output: IActiveOutput): HTMLElement {
    const { onError, trans } = this._options;
    const name = typeText([output.mimetype], trans);
    const row = element('div', '');
    const label = trans.__('Output %1: %2', output.index + 1, name);
    const close = () => {
      row.replaceChildren(open);
      open.focus();
    };
    const show = async () => {
      const text = await this._read(output);
      const hadFocus = document.activeElement === open;
      const box = this._createBox(output, text, label, close);
      row.replaceChildren(box);
      if (hadFocus) {
        box.querySelector('button')?.focus();
      }
    };
    const open = linkButton(
      output.isDrawn
        ? trans.__('View in a sandbox: %1', name)
        : trans.__('Show as text: %1', name),
      () => void show().catch(onError)
    );
    open.setAttribute('aria-expanded', 'false');
    row.append(open);
    return row;
  }

  /** What is shown of an output, which may have been left out. */
  private async _read({
    index,
    mimetype,
    text
  }: IActiveOutput): Promise<string> {
    if (text !== null) {
      return text;
    }
    const { id } = this._model.execution;
    const { cell } = await this._options.api.getExecution(id);
    return outputText(cell.outputs[index], mimetype) ?? '';
  }

  private _createBox(
    { isDrawn }: IActiveOutput,
    text: string,
    label: string,
    close: () => void
  ): HTMLElement {
    const { trans } = this._options;
    const box = element('div', 'jp-AgentExecSandbox-box');
    box.setAttribute('role', 'group');
    box.setAttribute('aria-label', label);
    const head = element('div', 'jp-AgentExecSandbox-head');
    const says = isDrawn
      ? trans.__('%1, without scripts or network access', label)
      : trans.__(
          '%1, shown as text. Scripts from agents do not run here, so it cannot be drawn.',
          label
        );
    const button = iconButton(closeIcon, trans.__('Close %1', label), close);
    button.title = trans.__('Close');
    box.addEventListener('keydown', event => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        close();
      }
    });
    head.append(element('span', '', says), button);
    box.append(head, isDrawn ? createFrame(text, label) : createData(text));
    return box;
  }

  private _rows: IRow[] = [];
}

/** Whether an output is one that is known; one left out stays as it was. */
function isSame(
  known: IActiveOutput,
  { index, mimetype, text }: IActiveOutput
) {
  return (
    known.index === index &&
    known.mimetype === mimetype &&
    (known.text === text || known.text === null || text === null)
  );
}

/** The frame: it may draw, and nothing else. */
function createFrame(text: string, label: string): HTMLElement {
  const frame = document.createElement('iframe');
  frame.setAttribute('sandbox', '');
  frame.referrerPolicy = 'no-referrer';
  frame.title = label;
  frame.srcdoc = sandboxDocument(text, label);
  return frame;
}

function createData(text: string): HTMLElement {
  const pre = element('pre', '', text);
  pre.tabIndex = 0;
  return pre;
}
