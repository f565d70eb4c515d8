/** What was done to agents' cells in a notebook, said where they are or were. */
import type { Cell } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import type { PanelLayout } from '@lumino/widgets';
import { Widget } from '@lumino/widgets';
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { bringIntoView } from '../ui/view';
import { element, iconButton, linkButton } from '../ui/elements';

/** A line between cells, with a button that undoes what it tells. */
export class DoneBar extends Widget {
  constructor(private readonly _options: DoneBar.IOptions) {
    super();
    const { trans, undo } = _options;
    this.addClass('jp-AgentExecDone');
    // Keys on its buttons are for them, not for the notebook.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this._text.setAttribute('role', 'status');
    const close = iconButton(closeIcon, trans.__('Close'), () =>
      this.dispose()
    );
    const undoing = linkButton(trans.__('Undo'), () => {
      this.dispose();
      undo();
    });
    this.node.append(this._text, undoing, close);
  }

  override dispose(): void {
    if (!this.isDisposed && this.node.contains(document.activeElement)) {
      this._options.notebook.activate();
    }
    super.dispose();
  }

  /**
   * Show it at the first of the cells that it is about, and scroll there.
   *
   * @param before - The notebook's cells as they were before.
   * @param ids - The executions that it is about.
   * @param areGone - Whether their cells were removed.
   */
  async showAt(
    before: readonly IShownCell[],
    ids: ReadonlySet<string | null>,
    areGone: boolean
  ): Promise<void> {
    const { notebook } = this._options;
    const first = before.findIndex(({ id }) => ids.has(id));
    const next = before
      .slice(Math.max(first, 0))
      .find(
        ({ cell, id }) =>
          notebook.widgets.includes(cell) && !(areGone && ids.has(id))
      )?.cell;
    const cell = next ?? notebook.widgets[notebook.widgets.length - 1];
    await bringIntoView(notebook, cell);
    const layout = cell.layout as PanelLayout;
    layout.insertWidget(next ? 0 : layout.widgets.length, this);
    await bringIntoView(notebook, cell, this.node);
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    // Those who listen hear only what changes in what is there.
    this._text.textContent = this._options.text;
  }

  private readonly _text = element('span', 'jp-AgentExecDone-text');
}

/** A cell, and the execution that it shows, if any. */
export interface IShownCell {
  cell: Cell;
  id: string | null;
}

/** The cells of a notebook as they are now. */
export function shownCells({ widgets }: Notebook): IShownCell[] {
  return widgets.map(cell => {
    const record = readCellRecord(cell.model.getMetadata(METADATA_KEY));
    return { cell, id: record?.execution_id ?? null };
  });
}

/** The options of such a line. */
export namespace DoneBar {
  /** What it is made of. */
  export interface IOptions {
    notebook: Notebook;
    /** What was done. */
    text: string;
    undo: () => void;
    trans: TranslationBundle;
  }
}
