/** Widgets that show details of a model: always, or when a person unfolds them. */
import type { ISignal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';
import { element } from './elements';

/** Shows what a function returns, and updates after each change. Hidden while that is nothing. */
export class Details extends Widget {
  constructor(
    model: { changed: ISignal<unknown, unknown> },
    private readonly _make: () => readonly HTMLElement[]
  ) {
    super();
    model.changed.connect(this._render, this);
    this._render();
  }

  private _render(): void {
    const nodes = this._make();
    const shown = nodes.map(({ outerHTML }) => outerHTML).join('');
    if (shown !== this._shown) {
      this._shown = shown;
      if (this.node.contains(document.activeElement)) {
        // What had the keyboard may be gone.
        this.node.closest<HTMLElement>('.jp-Cell')?.focus();
      }
      this.node.replaceChildren(...nodes);
      this.setHidden(nodes.length === 0);
    }
  }

  private _shown: string | null = null;
}

/** Shows a widget when it is unfolded; the widget is made the first time. */
export class Fold extends Widget {
  constructor(label: string, create: () => Widget, isOpen = false) {
    super({ node: element('details', '') });
    this.node.append(element('summary', '', label));
    const layout = (this.layout = new PanelLayout());
    const show = () => layout.addWidget(create());
    this.node.addEventListener('toggle', show, { once: true });
    this.node.toggleAttribute('open', isOpen);
  }
}
