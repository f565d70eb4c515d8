import { CodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import { CellOutputs } from '../../live/celloutputs';
import { stdout } from '../fakes';

function display(text: string): nbformat.IOutput {
  return {
    output_type: 'display_data',
    data: { 'text/plain': text },
    metadata: {}
  };
}

/** What a cell shows after it followed lists of outputs, one after the other. */
function follow(...lists: nbformat.IOutput[][]): nbformat.IOutput[] {
  const cell = new CodeCellModel({});
  let before: nbformat.IOutput[] = [];
  for (const after of lists) {
    CellOutputs.of(cell).follow(before, after);
    before = after;
  }
  return cell.outputs.toJSON();
}

describe('CellOutputs.follow', () => {
  const one = display('1');

  it('adds what is new, and what a stream has gained', () => {
    expect(follow([stdout('a')], [stdout('ab')], [stdout('abc'), one])).toEqual(
      [stdout('abc'), one]
    );
  });

  it('changes one output and leaves the others', () => {
    expect(follow([one, stdout('a')], [display('2'), stdout('a')])).toEqual([
      display('2'),
      stdout('a')
    ]);
  });

  it('replaces a stream that does not go on as it began', () => {
    expect(follow([stdout('abc'), one], [stdout('x'), one])).toEqual([
      stdout('x'),
      one
    ]);
  });

  it('takes away what is there no more', () => {
    expect(follow([stdout('a'), one, one], [stdout('a')])).toEqual([
      stdout('a')
    ]);
    expect(follow([one], [])).toEqual([]);
  });
});
