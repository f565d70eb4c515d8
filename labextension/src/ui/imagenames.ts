/** Names of images, for those who listen. */
import type { TranslationBundle } from '@jupyterlab/translation';

/** Name each image below a node that has no name, also those that come later. */
export function nameImages(
  node: HTMLElement,
  trans: TranslationBundle
): MutationObserver {
  const text = trans.__('Image output of the cell');
  const observer = new MutationObserver(() =>
    node.querySelectorAll('img:not([alt])').forEach(image => {
      image.setAttribute('alt', text);
    })
  );
  observer.observe(node, { childList: true, subtree: true });
  return observer;
}
