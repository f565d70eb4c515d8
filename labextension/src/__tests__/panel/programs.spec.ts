import { programsOf } from '../../panel/programs';

/** The programs in a cell with outputs of these types. */
function programs(mimetypes: string[], leftOut: string[] = []): string[] {
  const data = Object.fromEntries(mimetypes.map(each => [each, '']));
  const output = { output_type: 'display_data', data, metadata: {} };
  return programsOf([output], [{ index: 1, bytes: 9000, mimetypes: leftOut }]);
}

describe('programsOf', () => {
  it('tells what needs a program to be drawn', () => {
    const plotly = 'application/vnd.plotly.v1+json';
    const vega = 'application/vnd.vegalite.v5+json';
    expect(programs([plotly, 'text/plain'], [vega])).toEqual([plotly, vega]);
    expect(programs(['application/javascript'])).toEqual([
      'application/javascript'
    ]);
  });

  it('tells nothing of what is shown', () => {
    expect(programs(['text/html', 'image/svg+xml', 'image/png'])).toEqual([]);
  });
});
