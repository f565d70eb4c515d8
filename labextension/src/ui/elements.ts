/** Elements as this extension's views use them. */
import type { LabIcon } from '@jupyterlab/ui-components';

/** An element with a class, and a text that is never markup. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  text = ''
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

/** An icon; what it means stands beside it. */
export function iconElement(icon?: LabIcon): HTMLElement {
  const node = element('span', 'jp-AgentExec-icon');
  icon?.element({ container: node });
  return node;
}

/** A button that does something. */
function createButton(
  className: string,
  label: string,
  act: () => void
): HTMLButtonElement {
  const button = element('button', className, label);
  button.type = 'button';
  button.addEventListener('click', act);
  return button;
}

/** A button of JupyterLab's own looks. */
export function styledButton(
  label: string,
  kind: 'accept' | 'reject',
  act: () => void
): HTMLButtonElement {
  return createButton(`jp-mod-styled jp-mod-${kind}`, label, act);
}

/** A button that looks like a link. */
export function linkButton(label: string, act: () => void): HTMLButtonElement {
  return createButton('jp-AgentExec-link', label, act);
}

/** A button with an icon and a text beside it. */
export function labelledButton(
  icon: LabIcon,
  label: string | Node,
  act: () => void
): HTMLButtonElement {
  const button = createButton('jp-AgentExec-button', '', act);
  const image = iconElement(icon);
  image.setAttribute('aria-hidden', 'true');
  button.append(image, label);
  return button;
}

/** A button with nothing but an icon; its name can be read when it is pointed at. */
export function iconButton(
  icon: LabIcon,
  label: string,
  act: () => void
): HTMLButtonElement {
  const button = createButton('jp-AgentExec-iconButton', '', act);
  button.title = label;
  button.setAttribute('aria-label', label);
  icon.element({ container: button });
  return button;
}
