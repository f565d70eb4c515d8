/** Which variables an execution changed. */
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  isFinal,
  type IChanges,
  type IExecution,
  type IVariableChange
} from '../tokens';
import { element } from './elements';
import { plainName } from './wording';

/** Lines with the variables that an execution changed, and with the deleted ones. */
export function createChanges(
  { changes, document, started_at, status, trial }: IExecution,
  trans: TranslationBundle
): HTMLElement[] {
  const looks = trial || document !== null;
  return changes || (looks && started_at && isFinal(status))
    ? createLines(changes, trial, trans)
    : [];
}

/**
 * A line with the variables that changed, one with those that are gone, one for the others.
 *
 * `dress` gives what stands in a variable's place.
 */
export function createLines(
  changes: IChanges | null,
  trial: boolean,
  trans: TranslationBundle,
  dress: (item: HTMLElement, name: string) => HTMLElement = item => item
): HTMLElement[] {
  if (changes === null) {
    const unknown = trial
      ? trans.__('It is not known which variables it would change.')
      : trans.__('It is not known which variables it changed.');
    return [element('div', '', unknown)];
  }
  const { more_variables, not_compared, variables } = changes;
  const isDeleted = ({ change }: IVariableChange) => change === 'removed';
  const create = (each: IVariableChange) =>
    dress(createVariable(each, trans), each.name);
  const changed = variables.filter(each => !isDeleted(each)).map(create);
  if (more_variables > 0) {
    changed.push(
      element('bdi', '', trans._n('%1 more', '%1 more', more_variables))
    );
  }
  const deleted = variables.filter(isDeleted).map(create);
  const lines = [
    createLine(
      trial ? trans.__('It would change:') : trans.__('Changed:'),
      changed
    ),
    createLine(
      trial ? trans.__('It would delete:') : trans.__('Deleted:'),
      deleted
    )
  ].filter(line => line.childElementCount > 0);
  if (not_compared > 0) {
    const text = trans._n(
      'Not compared: %1 variable',
      'Not compared: %1 variables',
      not_compared
    );
    lines.push(element('div', '', text));
  }
  return lines;
}

function createLine(word: string, items: readonly HTMLElement[]): HTMLElement {
  const line = element('div', '', word);
  items.forEach((item, index) => line.append(index > 0 ? ', ' : ' ', item));
  return line;
}

/** A variable, and what is known of its change; its type and value when it is pointed at. */
function createVariable(
  variable: IVariableChange,
  trans: TranslationBundle
): HTMLElement {
  const { preview, type } = variable;
  const name = plainName(variable.name);
  const extent = extentOf(variable);
  const became = becameText(variable, trans);
  const item = element(
    'bdi',
    '',
    became ? `${name}: ${became}` : extent ? `${name} (${extent})` : name
  );
  item.title = [type, preview]
    .flatMap(each => (each ? [plainName(each)] : []))
    .join('\n');
  return item;
}

/** What a variable was, and what it is: "400 → 0 rows"; empty if no difference is known. */
function becameText(now: IVariableChange, trans: TranslationBundle): string {
  const { before } = now;
  if (!before || now.type === null) {
    return '';
  }
  if (before.type !== now.type) {
    return `${plainName(before.type)} → ${plainName(now.type)}`;
  }
  const [was, is] = [extentOf(before), extentOf(now)];
  if (was && is && was !== is) {
    const [rows, ...columns] = before.shape ?? [];
    const [left, ...others] = now.shape ?? [];
    return columns.length > 0 && `${columns}` === `${others}`
      ? trans.__('%1 → %2 rows', rows, left)
      : `${was} → ${is}`;
  }
  return before.preview && now.preview && before.preview !== now.preview
    ? `${plainName(before.preview)} → ${plainName(now.preview)}`
    : '';
}

/** How large a value is: "2 × 3" or "12"; empty if it is not told. */
function extentOf({
  length,
  shape
}: Pick<IVariableChange, 'length' | 'shape'>): string {
  return shape?.length ? shape.join(' × ') : length === null ? '' : `${length}`;
}
