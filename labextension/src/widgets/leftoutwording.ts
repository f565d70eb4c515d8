/** What outputs that are not shown are called. */
import type * as nbformat from '@jupyterlab/nbformat';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ILeftOut } from '../tokens';

/** The richest of an output's types, in words; its own name would tell nothing. */
export function typeText(
  mimetypes: readonly string[],
  trans: TranslationBundle
): string {
  const rich = mimetypes.filter(each => each !== 'text/plain');
  const known: [RegExp, string][] = [
    [/plotly/, trans.__('Plotly chart')],
    [/vega/, trans.__('Vega chart')],
    [/bokeh/, trans.__('Bokeh plot')],
    [/^application\/vnd\.jupyter\.widget/, trans.__('Widget')],
    [/^image\/svg\+xml$/, trans.__('SVG image')],
    [/^image\//, trans.__('Image')],
    [/^text\/html$/, trans.__('HTML')],
    [/^(application|text)\/(x-)?(java|ecma)script$/, trans.__('JavaScript')],
    [/^text\/markdown$/, trans.__('Markdown')],
    [/^text\/latex$/, trans.__('LaTeX')],
    [/json$/, trans.__('Data')]
  ];
  const found = known.find(([pattern]) =>
    rich.some(each => pattern.test(each))
  );
  const other = rich.length > 0 ? trans.__('Output') : trans.__('Text');
  return found?.[1] ?? other;
}

/** An output that was left out, by the richest of its types. */
export function kindText(
  { mimetypes }: ILeftOut,
  output: nbformat.IOutput | undefined,
  trans: TranslationBundle
): string {
  return output?.output_type === 'error'
    ? trans.__('Traceback')
    : typeText(mimetypes, trans);
}
