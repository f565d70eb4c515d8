import { nullTranslator } from '@jupyterlab/translation';
import { ExecutionModel } from '../../model/execution';
import { hiddenOutputsPart } from '../../widgets/hiddenoutputs';
import { execution } from '../fakes';

const trans = nullTranslator.load('');

/** What stands below the outputs of a cell with these types. */
function textFor(mimetypes: string[], leftOut: string[] = []): string | null {
  const data = Object.fromEntries(mimetypes.map(each => [each, '']));
  const output = { output_type: 'display_data', data, metadata: {} };
  const left_out = [{ index: 1, bytes: 9000, mimetypes: leftOut }];
  const model = new ExecutionModel(
    execution({ left_out, cell: { outputs: [output] } })
  );
  const part = hiddenOutputsPart(trans)(model);
  return part.isHidden ? null : part.node.textContent;
}

describe('hiddenOutputsPart', () => {
  it('names what needs a program to be drawn, once each', () => {
    const plotly = 'application/vnd.plotly.v1+json';
    expect(textFor([plotly, 'text/plain'], [plotly])).toBe(
      'Plotly chart hidden'
    );
    expect(
      textFor(['application/javascript'], ['application/vnd.vegalite.v5+json'])
    ).toBe('JavaScript, Vega chart hidden');
  });

  it('says nothing of what is shown', () => {
    expect(textFor(['text/html', 'image/svg+xml', 'image/png'])).toBeNull();
  });
});
