import { nullTranslator } from '@jupyterlab/translation';
import { kindText } from '../../ui/wording';
import { stdout } from '../fakes';

const trans = nullTranslator.load('jupyter_agent_exec');

describe('kindText', () => {
  it.each([
    [['text/plain'], 'Text'],
    [['text/html', 'text/plain'], 'HTML'],
    [['text/plain', 'application/vnd.plotly.v1+json'], 'Chart'],
    [['application/vnd.vegalite.v5+json'], 'Chart'],
    [['image/svg+xml', 'text/plain'], 'Image'],
    [['image/tiff'], 'Image'],
    [['application/geo+json'], 'Output'],
    [['application/pdf\u202e', 'text/plain'], 'Output']
  ])('names %j by the richest of them', (mimetypes, text) => {
    const left = { index: 0, bytes: 9, mimetypes };
    expect(kindText(left, undefined, trans)).toBe(text);
    expect(kindText(left, stdout(''), trans)).toBe(text);
  });

  it('knows a traceback by its output', () => {
    const left = { index: 0, bytes: 9, mimetypes: ['text/plain'] };
    const error = { output_type: 'error', ename: 'E', evalue: '' };
    expect(kindText(left, error, trans)).toBe('Traceback');
  });
});
