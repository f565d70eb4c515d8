/** What stands in a feed where a cell is not drawn yet. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

/** A place in the feed for an execution that is not known, or not drawn yet. */
export class Placeholder extends Widget {
  constructor(
    readonly seq: number,
    trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecCell');
    this.addClass('jp-mod-placeholder');
    this.node.setAttribute('role', 'article');
    this.node.setAttribute('aria-label', trans.__('Cell %1: loading', seq));
    this.node.setAttribute('aria-busy', 'true');
  }
}
