/** A dialog with a body in which one works, and which may refuse to close. */
import { Dialog } from '@jupyterlab/apputils';
import { Panel } from '@lumino/widgets';
import type { Widget } from '@lumino/widgets';

/** What the keyboard can reach. */
const REACHED =
  ':is(a[href], button, input, select, summary, textarea, [tabindex="0"]):not(:disabled, [tabindex="-1"])';

/** Keys that buttons and tabs have a use for of their own. */
const OF_BUTTONS = ['Enter', 'ArrowLeft', 'ArrowRight'];

/**
 * JupyterLab's dialog, but for its keys: in its body, buttons can be pressed
 * with Enter, and lines be written; Tab leads round all that is there now.
 */
export class FormDialog extends Dialog<void> {
  constructor({ accept, body, ...options }: FormDialog.IOptions) {
    // Not as the dialog's own body: it would wrap what React has drawn.
    const panel = new Panel();
    panel.addWidget(body);
    super({ ...options, body: panel });
    this.addClass('jp-AgentExecDialog');
    this.node.setAttribute('aria-label', options.title);
    this._accept = accept;
    this._acceptAt = options.buttons.findIndex(each => each.accept);
    this._content = panel;
  }

  override handleEvent(event: Event): void {
    if (!(event instanceof KeyboardEvent && this._isForBody(event))) {
      super.handleEvent(event);
    }
  }

  /** Close it; if that is to accept, only after what that means was done. */
  override resolve(index = this._acceptAt): void {
    if (index === this._acceptAt) {
      void this._accept().then(done => done && super.resolve(index));
    } else {
      super.resolve(index);
    }
  }

  private _isForBody(event: KeyboardEvent): boolean {
    const target = event.target as Element;
    if (event.type !== 'keydown') {
      return false;
    }
    if (event.key === 'Tab') {
      return this._leadRound(event);
    }
    return (
      this._content.node.contains(target) &&
      OF_BUTTONS.includes(event.key) &&
      target.matches('button, select, summary, textarea')
    );
  }

  /** Lead from the last to the first and back; whether that was done. */
  private _leadRound(event: KeyboardEvent): boolean {
    const all = this.node.querySelectorAll<HTMLElement>(REACHED);
    const first = all[0];
    const last = all[all.length - 1];
    const [from, to] = event.shiftKey ? [first, last] : [last, first];
    if (event.target === from) {
      event.preventDefault();
      to.focus();
    }
    return true;
  }

  private readonly _accept: () => Promise<boolean>;
  private readonly _acceptAt: number;
  private readonly _content: Widget;
}

/** The options of such a dialog. */
export namespace FormDialog {
  /** What it is made of. */
  export interface IOptions
    extends
      Pick<Dialog.IOptions<void>, 'buttons'>,
      Partial<Pick<Dialog.IOptions<void>, 'hasClose'>> {
    title: string;
    body: Widget;
    /** Do what was asked; whether the dialog is to close. It must not reject. */
    accept: () => Promise<boolean>;
  }
}
