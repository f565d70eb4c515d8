/** What was decided about an execution before it ran. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IExecutionModel } from '../tokens';
import { outcomeText } from '../widgets/approvalwording';
import { element, linkButton } from '../widgets/elements';
import { createComparison } from '../widgets/plainsource';

/** A line, and what a person changed; hidden if nothing was to be decided. */
export class ApprovalRecord extends Widget {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecApprovalRecord');
    _model.changed.connect(this._onChanged, this);
    this._render();
  }

  private _onChanged(_: IExecutionModel, what: 'status' | 'outputs'): void {
    if (what === 'status') {
      this._render();
    }
  }

  private _render(): void {
    const { approval } = this._model.execution;
    const text = approval
      ? outcomeText(this._model.execution, this._trans)
      : '';
    this.setHidden(text === '');
    if (text === this._text) {
      return;
    }
    this._text = text;
    this.node.replaceChildren(element('span', '', text));
    if (approval?.asked_source) {
      this.node.append(this._createToggle(approval.asked_source));
    }
  }

  private _createToggle(asked: string): HTMLElement {
    const trans = this._trans;
    const { lookalikes, source } = this._model.execution;
    let shown: HTMLElement[] = [];
    const toggle = linkButton(trans.__('Show what was changed'), () => {
      const open = shown.length === 0;
      shown.forEach(node => node.remove());
      shown = open ? createComparison(asked, source, lookalikes, trans) : [];
      this.node.append(...shown);
      toggle.setAttribute('aria-expanded', String(open));
    });
    toggle.setAttribute('aria-expanded', 'false');
    return toggle;
  }

  private _text = '';
}
