/**
 * What JupyterLab has no public way for: each says why it is needed.
 *
 * `__tests__/model/workarounds.spec.ts` fails when one of them works no longer,
 * or is needed no longer.
 */
import type { IDocumentWidget } from '@jupyterlab/docregistry';
import type { Notebook, NotebookViewModel } from '@jupyterlab/notebook';

/**
 * JupyterLab's own model of where a notebook's cells are.
 *
 * In windowing mode `full` it decides, and what is drawn follows some frames
 * later, with cells that are there only to be measured: what stands where
 * cannot be seen, and would not stay where it was put. It is protected, for
 * those who extend a notebook; nothing public tells the same. No upstream issue
 * is known.
 */
export function cellPlaces(notebook: Notebook): NotebookViewModel {
  return notebook['viewModel'];
}

/**
 * Let a document's tab have another label than the name of its file.
 *
 * JupyterLab takes a new label for a new name of the file, and renames it. Other
 * renames are left to it. See
 * https://github.com/jupyterlab/jupyterlab/issues/10856.
 */
export function allowOtherTitle({ context, title }: IDocumentWidget): void {
  const rename = context.rename.bind(context);
  context.rename = name =>
    name === title.label ? new Promise(() => undefined) : rename(name);
}
