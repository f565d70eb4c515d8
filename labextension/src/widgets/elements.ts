/** Elements as this extension's views use them. */

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

/** A button of JupyterLab's own looks. */
export function styledButton(
  label: string,
  kind: 'accept' | 'reject' | 'warn',
  act: () => void
): HTMLButtonElement {
  const button = element('button', `jp-mod-styled jp-mod-${kind}`, label);
  button.type = 'button';
  button.addEventListener('click', act);
  return button;
}

/** A button that looks like a link. */
export function linkButton(label: string, act: () => void): HTMLButtonElement {
  const button = element('button', 'jp-AgentExec-link', label);
  button.type = 'button';
  button.addEventListener('click', act);
  return button;
}
