/** What an execution changed besides its outputs. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IChanges, IExecutionModel } from '../tokens';
import { changesText, changeWord, extentText, sizeText } from './wording';
import { element } from './elements';
import { plainName } from './notebookwording';

/** A line that opens to tables of variables and files. */
export class ChangesWidget extends Widget {
  constructor(
    private readonly _model: IExecutionModel,
    private readonly _trans: TranslationBundle
  ) {
    super({ node: element('details', 'jp-AgentExecChanges') });
    // They scroll if they are wider than the panel: with keys too.
    this._tables.tabIndex = 0;
    this._tables.setAttribute('role', 'group');
    this._tables.setAttribute('aria-label', _trans.__('What changed'));
    this.node.append(this._summary, this._tables);
    // What is not opened need not be drawn.
    this.node.addEventListener('toggle', () => this._draw());
    this.hide();
    _model.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  private _onChanged(): void {
    const { changes } = this._model.execution;
    if (changes === this._shown) {
      return;
    }
    this._shown = changes;
    const text = changesText(changes, this._trans);
    this.setHidden(text === '');
    this._summary.textContent = this._trans.__('Changed: %1', text);
    this._draw();
  }

  private _draw(): void {
    const isOpen = (this.node as HTMLDetailsElement).open;
    const tables =
      isOpen && this._shown
        ? [
            createVariables(this._shown, this._trans),
            createFiles(this._shown, this._trans)
          ]
        : [];
    this._tables.replaceChildren(...tables.flat());
  }

  private _shown: IChanges | null = null;
  private readonly _summary = element('summary', '');
  private readonly _tables = element('div', 'jp-AgentExecChanges-tables');
}

function createVariables(
  { more_variables, variables }: IChanges,
  trans: TranslationBundle
): HTMLElement[] {
  const rows = variables.map(variable => [
    plainName(variable.name),
    changeWord(variable.change, trans),
    plainName(variable.type ?? ''),
    extentText(variable),
    plainName(variable.preview ?? '')
  ]);
  const heads = [
    trans.__('Variable'),
    trans.__('Change'),
    trans.__('Type'),
    trans.__('Size'),
    trans.__('Value')
  ];
  return createTable(trans.__('Variables'), heads, rows, more_variables, trans);
}

function createFiles(
  { files, more_files }: IChanges,
  trans: TranslationBundle
): HTMLElement[] {
  const rows = files.map(({ bytes, path }) => [
    plainName(path),
    sizeText(bytes, trans)
  ]);
  const heads = [trans.__('File'), trans.__('Size')];
  return createTable(trans.__('Files'), heads, rows, more_files, trans);
}

/** A table whose first column names the rows, and how many more there are. */
function createTable(
  label: string,
  heads: string[],
  rows: string[][],
  more: number,
  trans: TranslationBundle
): HTMLElement[] {
  const parts: HTMLElement[] = [];
  if (rows.length > 0) {
    const table = element('table', 'jp-AgentExecChanges-table');
    table.setAttribute('aria-label', label);
    const head = table.createTHead().insertRow();
    head.append(...heads.map(each => createHead(each, 'col')));
    const body = table.createTBody();
    for (const [name, ...values] of rows) {
      const row = body.insertRow();
      row.append(createHead(name, 'row'));
      row.append(...values.map(value => createValue(value)));
    }
    parts.push(table);
  }
  if (more > 0) {
    const text = trans._n('%1 more', '%1 more', more, more);
    parts.push(element('div', 'jp-AgentExecChanges-more', text));
  }
  return parts;
}

function createHead(text: string, scope: 'col' | 'row'): HTMLElement {
  const head = element('th', '');
  head.scope = scope;
  head.append(element('bdi', '', text));
  return head;
}

function createValue(text: string): HTMLElement {
  const cell = element('td', '');
  cell.append(element('bdi', '', text));
  return cell;
}
