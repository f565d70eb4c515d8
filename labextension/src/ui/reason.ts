/** A line for the reason why an agent does not get what it asks for. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { element } from './elements';

/** Characters that the server takes. */
const MOST = 5000;

/** A labelled field. */
export interface IReason {
  readonly label: HTMLLabelElement;
  readonly input: HTMLInputElement;
  /** What is in it; it may be empty. */
  text(): string;
}

/** @param send - What Enter does. */
export function createReason(
  send: () => void,
  trans: TranslationBundle
): IReason {
  const input = element('input', 'jp-mod-styled');
  input.maxLength = MOST;
  input.type = 'text';
  input.addEventListener('keydown', event => {
    if (event.key === 'Enter' && !event.isComposing) {
      event.preventDefault();
      send();
    }
  });
  const text = trans.__('Reason for the agent (optional)');
  const label = element('label', '', text);
  label.append(input);
  return { label, input, text: () => input.value.trim() };
}
