/** Which variables an execution changed. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IChanges, IExecution, IVariableChange } from '../tokens';
import { element } from './elements';
import { plainName } from './wording';

/** Lines with the variables that an execution changed, and with the deleted ones. */
export function createChanges(
  { changes, trial }: IExecution,
  trans: TranslationBundle
): HTMLElement[] {
  const words = trial
    ? wordsOfTrial(trans)
    : { changed: trans.__('Changed:'), deleted: trans.__('Deleted:') };
  return changes ? createLines(changes, trans, words) : [];
}

/** The words for changes that were not made. */
export function wordsOfTrial(trans: TranslationBundle): {
  changed: string;
  deleted: string;
} {
  return {
    changed: trans.__('It would change:'),
    deleted: trans.__('It would delete:')
  };
}

/** A line with the variables that changed, and one with those that are gone. */
export function createLines(
  { more_variables, variables }: IChanges,
  trans: TranslationBundle,
  words: { changed: string; deleted: string }
): HTMLElement[] {
  const isDeleted = ({ change }: IVariableChange) => change === 'removed';
  const changed = variables
    .filter(each => !isDeleted(each))
    .map(createVariable);
  if (more_variables > 0) {
    changed.push(
      element(
        'bdi',
        '',
        trans._n('%1 more', '%1 more', more_variables, more_variables)
      )
    );
  }
  return [
    createLine(words.changed, changed),
    createLine(words.deleted, variables.filter(isDeleted).map(createVariable))
  ].filter(line => line.childElementCount > 0);
}

function createLine(word: string, items: readonly HTMLElement[]): HTMLElement {
  const line = element('div', '', word);
  items.forEach((item, index) => line.append(index > 0 ? ', ' : ' ', item));
  return line;
}

/** A variable's name and size; its type and value when it is pointed at. */
function createVariable(variable: IVariableChange): HTMLElement {
  const { name, preview, type } = variable;
  const extent = extentOf(variable);
  const item = element(
    'bdi',
    '',
    extent ? `${plainName(name)} (${extent})` : plainName(name)
  );
  item.title = [type, preview]
    .flatMap(each => (each ? [plainName(each)] : []))
    .join('\n');
  return item;
}

/** How large a value is: "2 × 3" or "12"; empty if it is not told. */
function extentOf({ length, shape }: IVariableChange): string {
  return shape?.length ? shape.join(' × ') : length === null ? '' : `${length}`;
}
