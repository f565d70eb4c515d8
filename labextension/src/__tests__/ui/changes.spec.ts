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
    ...given
  };
}

function changes(given: Partial<IChanges> = {}): IChanges {
  return {
    variables: [],
    more_variables: 0,
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
    [changes({ variables: [deleted] }), ['Deleted: y']]
  ])('names what changed: %j', (given, lines) => {
    expect(shown(given).map(({ textContent }) => textContent)).toEqual(lines);
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
