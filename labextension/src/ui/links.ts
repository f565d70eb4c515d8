/** Asks the user before a link that an agent wrote is opened. */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

/** Where agents' outputs are; a person's are those that they ran or accepted. */
const OUTPUTS = [
  '.jp-AgentExecSessionNotebook',
  '.jp-Cell.jp-mod-agentExec:has(.jp-AgentExecBadge:not([data-outputs="accepted"]))'
]
  .map(place => `${place} .jp-OutputArea-output`)
  .join(', ');

/** What a link may lead to: no script, and nothing of this page. */
const OUTWARD = /^(https?|mailto):/;

/** Characters of an address that are shown. */
const LONGEST = 500;

/** Go where a link leads, if the person wants that. */
async function follow(
  { hash, href, origin, protocol }: HTMLAnchorElement,
  trans: TranslationBundle
): Promise<void> {
  const isHere = origin === location.origin;
  if (!OUTWARD.test(protocol) || (isHere && hash !== '')) {
    return;
  }
  const isLong = href.length > LONGEST;
  const { button } = await showDialog({
    title: trans.__('Open this link from an agent?'),
    body: isLong ? `${href.slice(0, LONGEST)}…` : href,
    buttons: [
      Dialog.cancelButton(),
      Dialog.okButton({ label: trans.__('Open') })
    ],
    defaultButton: 0
  });
  if (button.accept) {
    window.open(href, '_blank', 'noopener,noreferrer');
  }
}

/** Ask before a link in an agent's output is opened, wherever it is shown. */
export function guardLinks(
  trans: TranslationBundle,
  onError: (error: unknown) => void
): void {
  const ask = (event: MouseEvent) => {
    const link = (event.target as Element | null)?.closest?.('a[href]');
    if (link?.closest(OUTPUTS)) {
      // Before JupyterLab's own listeners, which run commands of links.
      event.preventDefault();
      event.stopPropagation();
      if (link instanceof HTMLAnchorElement) {
        void follow(link, trans).catch(onError);
      }
    }
  };
  for (const click of ['click', 'auxclick'] as const) {
    document.addEventListener(click, ask, true);
  }
}
