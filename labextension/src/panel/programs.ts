/** Which outputs of a cell the panel does not show. */
import type * as nbformat from '@jupyterlab/nbformat';
import type { ILeftOut } from '../tokens';

/** Types that are programs, or data for one: the panel runs none of an agent's. */
const PROGRAMS =
  /^((application|text)\/javascript|application\/(geo\+json|vnd\.(plotly|vega|vegalite|bokehjs|holoviews|jupyter\.widget)[\w.+-]*))$/;

/** The types of outputs that need a program to be drawn. */
export function programsOf(
  outputs: readonly nbformat.IOutput[],
  leftOut: readonly ILeftOut[]
): string[] {
  return [
    ...outputs.flatMap(({ data }) => Object.keys(data ?? {})),
    ...leftOut.flatMap(({ mimetypes }) => mimetypes)
  ].filter(each => PROGRAMS.test(each));
}
