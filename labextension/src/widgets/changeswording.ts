/** How what an execution changed is said to a person. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IChanges, IVariableChange } from '../tokens';

/** "3 variables, 1 file"; empty if nothing changed. */
export function changesText(
  changes: IChanges | null,
  trans: TranslationBundle
): string {
  const variables = changes
    ? changes.variables.length + changes.more_variables
    : 0;
  const files = changes ? changes.files.length + changes.more_files : 0;
  return [
    variables > 0 &&
      trans._n('%1 variable', '%1 variables', variables, variables),
    files > 0 && trans._n('%1 file', '%1 files', files, files)
  ]
    .filter(Boolean)
    .join(', ');
}

/** What became of a variable. */
export function changeWord(
  change: IVariableChange['change'],
  trans: TranslationBundle
): string {
  switch (change) {
    case 'added':
      return trans.__('new');
    case 'changed':
      return trans.__('changed');
    case 'removed':
      return trans.__('deleted');
    default:
      // What a newer server tells.
      return String(change);
  }
}

/** How large a value is: "2 × 3" or "12"; empty if it is not told. */
export function extentText({ length, shape }: IVariableChange): string {
  if (shape) {
    return shape.length === 0 ? '()' : shape.join(' × ');
  }
  return length === null ? '' : String(length);
}
