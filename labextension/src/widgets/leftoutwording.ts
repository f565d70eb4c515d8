/** How an output that was left out is said to a person. */
import type * as nbformat from '@jupyterlab/nbformat';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ILeftOut } from '../tokens';
import { plainName, shortText } from './notebookwording';

/** What an output is, by the richest of its types. */
export function kindText(
  { mimetypes }: ILeftOut,
  output: nbformat.IOutput | undefined,
  trans: TranslationBundle
): string {
  if (output?.output_type === 'error') {
    return trans.__('Traceback');
  }
  const known: [RegExp, string][] = [
    [/plotly/, trans.__('Plotly figure')],
    [/vega/, trans.__('Vega chart')],
    [/bokeh/, trans.__('Bokeh plot')],
    [/^application\/vnd\.jupyter\.widget/, trans.__('Widget')],
    [/^image\/svg\+xml$/, trans.__('SVG image')],
    [/^image\//, trans.__('Image')],
    [/^text\/html$/, trans.__('HTML')],
    [/javascript|ecmascript/, trans.__('JavaScript')],
    [/^text\/markdown$/, trans.__('Markdown')],
    [/^text\/latex$/, trans.__('LaTeX')],
    [/json$/, trans.__('JSON')]
  ];
  for (const [pattern, name] of known) {
    if (mimetypes.some(each => pattern.test(each))) {
      return name;
    }
  }
  const other = mimetypes.find(each => each !== 'text/plain');
  return other ? shortText(plainName(other)) : trans.__('Text');
}
