import { nullTranslator } from '@jupyterlab/translation';
import type { IChanges, IVariableChange } from '../../tokens';
import { changesText, changeWord, extentText } from '../../widgets/wording';

const trans = nullTranslator.load('jupyter_agent_exec');

function variable(given: Partial<IVariableChange> = {}): IVariableChange {
  return {
    name: 'df',
    change: 'added',
    type: 'pandas.DataFrame',
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
    files: [],
    more_files: 0,
    ...given
  };
}

const FILE = { path: 'a.csv', bytes: 1, modified_at: '' };

describe('changesText', () => {
  it.each([
    [null, ''],
    [changes(), ''],
    [changes({ variables: [variable()] }), '1 variable'],
    [
      changes({ variables: [variable(), variable()], files: [FILE] }),
      '2 variables, 1 file'
    ],
    [changes({ files: [FILE, FILE] }), '2 files'],
    [
      changes({ variables: [variable()], more_variables: 40, more_files: 2 }),
      '41 variables, 2 files'
    ]
  ])('counts what changed: %j', (given, text) => {
    expect(changesText(given, trans)).toBe(text);
  });
});

describe('changeWord', () => {
  it('has a word for each, and passes on what is new to it', () => {
    expect(changeWord('added', trans)).toBe('new');
    expect(changeWord('changed', trans)).toBe('changed');
    expect(changeWord('removed', trans)).toBe('deleted');
    expect(changeWord('renamed' as 'added', trans)).toBe('renamed');
  });
});

describe('extentText', () => {
  it('tells a shape rather than a length', () => {
    expect(extentText(variable())).toBe('');
    expect(extentText(variable({ length: 0 }))).toBe('0');
    expect(extentText(variable({ shape: [2, 3], length: 2 }))).toBe('2 × 3');
    expect(extentText(variable({ shape: [] }))).toBe('()');
  });
});
