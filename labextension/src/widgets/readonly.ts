/** Makes a notebook one that can only be read. */
import type { NotebookPanel } from '@jupyterlab/notebook';

/** What would put cells of others into the notebook, or move its own. */
const DRAGS = ['lm-dragenter', 'lm-dragover', 'lm-drop'];

/** Let nobody change what a notebook shows, nor be asked to save it. */
export function makeReadOnly({ content, context, node }: NotebookPanel): void {
  const { model } = context;
  model.readOnly = true;
  model.stateChanged.connect(() => {
    // What comes into it is recorded elsewhere.
    if (model.dirty) {
      model.dirty = false;
    }
  });
  const lock = () => {
    for (const cell of content.widgets) {
      // Of the cell alone: written into each one's metadata it takes seconds,
      // and with thousands of cells more calls than there may be.
      cell.syncEditable = false;
      cell.readOnly = true;
    }
  };
  model.cells.changed.connect(lock);
  lock();
  for (const drag of DRAGS) {
    node.addEventListener(drag, event => event.stopPropagation(), true);
  }
}
