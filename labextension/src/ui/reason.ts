/** A line for the reason why an agent does not get what it asks for. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { element } from './elements';

/** Characters that the server takes. */
const MOST = 5000;

/** A labelled field; Enter sends what is in it, which may be nothing. */
export function createReason(
  send: (reason: string) => void,
  trans: TranslationBundle
): { label: HTMLLabelElement; input: HTMLInputElement } {
  const input = element('input', 'jp-mod-styled');
  input.maxLength = MOST;
  input.type = 'text';
  input.addEventListener('keydown', event => {
    if (event.key === 'Enter' && !event.isComposing) {
      event.preventDefault();
      send(input.value.trim());
    }
  });
  const text = trans.__('Reason for the agent (optional)');
  const label = element('label', '', text);
  label.append(input);
  return { label, input };
}
