import { nullTranslator } from '@jupyterlab/translation';
import { createChanges } from '../../ui/changes';
import type { IChanges, IVariableChange } from '../../tokens';
import { execution } from '../fakes';

const trans = nullTranslator.load('jupyter_agent_exec');

function variable(given: Partial<IVariableChange> = {}): IVariableChange {
  return {
    name: 'df',
    change: 'added',
    type: 'DataFrame',
    shape: null,
    length: null,
    preview: null,
    before: null,
    ...given
  };
}

function changes(given: Partial<IChanges> = {}): IChanges {
  return {
    variables: [],
    more_variables: 0,
    not_compared: 0,
    ...given
  };
}

/** The lines about an execution. */
function shown(given: IChanges | null): HTMLElement[] {
  return createChanges(execution({ changes: given }), trans);
}

describe('createChanges', () => {
  const deleted = variable({ name: 'y', change: 'removed' });
  const table = variable({ shape: [2, 3], length: 2 });

  it.each([
    [null, []],
    [changes(), []],
    [changes({ variables: [variable()] }), ['Changed: df']],
    [
      changes({ variables: [table, deleted] }),
      ['Changed: df (2 × 3)', 'Deleted: y']
    ],
    [
      changes({
        variables: [variable({ shape: [], length: 0 })],
        more_variables: 42
      }),
      ['Changed: df (0), 42 more']
    ],
    [changes({ variables: [deleted] }), ['Deleted: y']],
    [changes({ not_compared: 1 }), ['Not compared: 1 variable']],
    [
      changes({ variables: [deleted], not_compared: 12 }),
      ['Deleted: y', 'Not compared: 12 variables']
    ]
  ])('names what changed: %j', (given, lines) => {
    expect(shown(given).map(({ textContent }) => textContent)).toEqual(lines);
  });

  it.each([
    [{ shape: [400, 3] }, { shape: [0, 3] }, 'df: 400 → 0 rows'],
    [{ shape: [400, 3] }, { shape: [400, 4] }, 'df: 400 × 3 → 400 × 4'],
    [{ shape: [4] }, { shape: [5] }, 'df: 4 → 5'],
    [{ length: 1 }, { length: 2 }, 'df: 1 → 2'],
    [{ preview: '0' }, { preview: "'\u202e'" }, "df: 0 → '\ufffd'"],
    [{ type: 'DataFrame', shape: [4, 3] }, { type: 'x' }, 'df: DataFrame → x'],
    [{ shape: [4, 3] }, { shape: [4, 3] }, 'df (4 × 3)']
  ])('says what became of %j: %j', (was, is, text) => {
    const none = { shape: null, length: null, preview: null };
    const before = { ...none, type: 'DataFrame', ...was };
    const now = { change: 'changed' as const, before, ...is };
    const [line] = shown(changes({ variables: [variable(now)] }));
    expect(line.textContent).toBe(`Changed: ${text}`);
  });

  it.each([
    [{ trial: true }, ['It is not known which variables it would change.']],
    [{ trial: true, status: 'running' as const }, []],
    [{ trial: false, document: null }, []]
  ])('says that changes are not known: %j', (given, lines) => {
    const started_at = '2026-11-21T09:00:00.000Z';
    const ended = { status: 'error' as const, changes: null, started_at };
    const told = createChanges(execution({ ...ended, ...given }), trans);
    expect(told.map(({ textContent }) => textContent)).toEqual(lines);
  });

  it('shows names and values as plain text that turns nothing', () => {
    const name = '<b>\u202ex';
    const preview = 'a\u202eb';
    const [line] = shown(changes({ variables: [variable({ name, preview })] }));
    const item = line.querySelector('bdi')!;
    expect(item.textContent).toBe('<b>\ufffdx');
    expect(item.title).toBe('DataFrame\na\ufffdb');
  });
});
