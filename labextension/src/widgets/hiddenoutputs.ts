/** Says which outputs of a cell the panel does not show. */
import type * as nbformat from '@jupyterlab/nbformat';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IExecutionModel, ILeftOut } from '../tokens';
import type { CellPart } from './cell';
import { heldText } from './notebookwording';

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

/** A part of the panel's cells: a line while something is hidden. */
export function hiddenOutputsPart(trans: TranslationBundle): CellPart {
  return model => new HiddenOutputs(model, trans);
}

class HiddenOutputs extends Widget {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecCell-hidden');
    _model.changed.connect(this._render, this);
    this._render();
  }

  private _render(): void {
    const { execution, outputs } = this._model;
    const types = programsOf(outputs, execution.left_out);
    this.node.textContent =
      types.length > 0 ? heldText(types, this._trans) : '';
    this.setHidden(types.length === 0);
  }
}
