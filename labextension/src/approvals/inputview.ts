/** What the code of an execution asks for while it runs, and a field for it. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { ApiError } from '../api/errors';
import type { IAgentExecApi, IExecution, IInput } from '../tokens';
import { element, styledButton } from '../ui/elements';
import { errorText, plainName } from '../ui/wording';

/**
 * Shows a field while the code asks for input; hidden else.
 *
 * What is typed is sent as the answer to what is shown: if somebody else was
 * quicker, the server refuses it, and this shows what is asked then.
 */
export class InputView extends Widget {
  constructor(private readonly _options: InputView.IOptions) {
    super();
    this.addClass('jp-AgentExecInput');
    // Keys are for its field, not for the cells around it.
    this.node.dataset.lmSuppressShortcuts = 'true';
    _options.model.changed.connect(this._onChanged, this);
    this._render(null);
    this._onChanged();
  }

  protected override onActivateRequest(): void {
    this.node.querySelector('input')?.focus({ preventScroll: true });
  }

  private _onChanged(): void {
    const asked = this._options.model.execution.input ?? null;
    if (asked?.asked_at !== this._shown?.asked_at) {
      this._render(asked);
    }
  }

  private _render(asked: IInput | null): void {
    const hadFocus = this.node.contains(document.activeElement);
    this._shown = asked;
    this.setHidden(asked === null);
    if (!asked) {
      if (hadFocus) {
        // The keyboard stays at the cell, and comes back if there it is asked on.
        this._led = this.node.parentElement?.closest('[tabindex]') ?? null;
        this._led?.focus();
      }
      this.node.replaceChildren();
      return;
    }
    const { trans } = this._options;
    const form = element('form', 'jp-AgentExecInput-form');
    const field = createField(asked);
    const label = element('label', 'jp-AgentExecInput-prompt');
    const prompt = plainPrompt(asked.prompt);
    label.append(element('bdi', '', prompt || trans.__('Input')));
    label.htmlFor = field.id;
    const send = styledButton(trans.__('Send'), 'accept', () => undefined);
    send.type = 'submit';
    const note = element(
      'div',
      'jp-AgentExecInput-note',
      asked.password
        ? trans.__(
            'The agent’s code asks for a password. It is not recorded, but the code can read it.'
          )
        : trans.__('The agent’s code asks for input. Your answer is recorded.')
    );
    note.id = `${field.id}-note`;
    field.setAttribute('aria-describedby', note.id);
    const notice = element('div', 'jp-AgentExecInput-notice');
    notice.setAttribute('role', 'alert');
    form.append(label, field, send);
    form.addEventListener('submit', event => {
      event.preventDefault();
      void this._send(asked, field, send, notice);
    });
    field.addEventListener('keydown', event => {
      // JupyterLab keeps the browser from doing so in a cell.
      if (event.key === 'Enter' && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    this.node.replaceChildren(note, form, notice);
    if (hadFocus || (this._led && this._led === document.activeElement)) {
      field.focus();
    }
    this._led = null;
  }

  private async _send(
    asked: IInput,
    field: HTMLInputElement,
    send: HTMLButtonElement,
    notice: HTMLElement
  ): Promise<void> {
    const { api, model, trans } = this._options;
    if (field.readOnly) {
      return;
    }
    send.setAttribute('aria-disabled', 'true');
    field.readOnly = true;
    notice.textContent = '';
    try {
      await api.giveInput(model.execution.id, field.value, asked.asked_at);
    } catch (error) {
      const late =
        error instanceof ApiError && error.code === 'input_not_asked';
      notice.textContent = late
        ? trans.__(
            'Somebody has already answered, or the code no longer waits for input.'
          )
        : errorText(error, trans);
    }
    send.removeAttribute('aria-disabled');
    field.readOnly = false;
  }

  /** Where the keyboard was led when nothing was asked any more. */
  private _led: HTMLElement | null = null;
  private _shown: IInput | null = null;
}

/** A field for one line; what is typed stays out of the browser's memory. */
function createField(asked: IInput): HTMLInputElement {
  const field = element('input', 'jp-mod-styled jp-AgentExecInput-field');
  field.type = asked.password ? 'password' : 'text';
  field.id = `jp-AgentExecInput-${UUID.uuid4()}`;
  field.autocomplete = asked.password ? 'new-password' : 'off';
  field.spellcheck = false;
  return field;
}

/** A prompt, line by line without what would turn or hide the text around it. */
function plainPrompt(prompt: string): string {
  return prompt
    .trim()
    .split(/\r\n|\r|\n/)
    .map(plainName)
    .join('\n');
}

/** The options of the view. */
export namespace InputView {
  /** What it is made of. */
  export interface IOptions {
    model: {
      readonly changed: ISignal<unknown, unknown>;
      readonly execution: Pick<IExecution, 'id' | 'input'>;
    };
    api: Pick<IAgentExecApi, 'giveInput'>;
    trans: TranslationBundle;
  }
}
