/** What an execution changed besides its outputs. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IChanges, IExecutionModel, IVariableChange } from '../tokens';
import { element } from './elements';
import { plainName, sizeText } from './wording';

/** Lines with the variables and files that changed, and the deleted variables. */
export class ChangesWidget extends Widget {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecChanges');
    this.hide();
    _model.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  private _onChanged(): void {
    const { changes } = this._model.execution;
    if (changes !== this._shown) {
      this._shown = changes;
      const lines = changes ? createLines(changes, this._trans) : [];
      this.node.replaceChildren(...lines);
      this.setHidden(lines.length === 0);
    }
  }

  private _shown: IChanges | null = null;
}

function createLines(
  { files, more_files, more_variables, variables }: IChanges,
  trans: TranslationBundle
): HTMLElement[] {
  const isDeleted = ({ change }: IVariableChange) => change === 'removed';
  const changed = [
    ...variables.filter(each => !isDeleted(each)).map(createVariable),
    ...files.map(({ bytes, path }) =>
      element('bdi', '', `${plainName(path)} (${sizeText(bytes)})`)
    )
  ];
  const more = more_variables + more_files;
  if (more > 0) {
    changed.push(
      element('bdi', '', trans._n('%1 more', '%1 more', more, more))
    );
  }
  return [
    createLine(trans.__('Changed:'), changed),
    createLine(
      trans.__('Deleted:'),
      variables.filter(isDeleted).map(createVariable)
    )
  ].filter(line => line.childElementCount > 0);
}

function createLine(word: string, items: readonly HTMLElement[]): HTMLElement {
  const line = element('div', '', word);
  items.forEach((item, index) => line.append(index > 0 ? ', ' : ' ', item));
  return line;
}

/** A variable's name and size; its type and value when it is pointed at. */
function createVariable(variable: IVariableChange): HTMLElement {
  const { name, preview, type } = variable;
  const extent = extentOf(variable);
  const item = element(
    'bdi',
    '',
    extent ? `${plainName(name)} (${extent})` : plainName(name)
  );
  item.title = [type, preview]
    .flatMap(each => (each ? [plainName(each)] : []))
    .join('\n');
  return item;
}

/** How large a value is: "2 × 3" or "12"; empty if it is not told. */
function extentOf({ length, shape }: IVariableChange): string {
  return shape?.length ? shape.join(' × ') : length === null ? '' : `${length}`;
}
