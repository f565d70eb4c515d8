import type { Cell } from '@jupyterlab/cells';
import { NotebookModel } from '@jupyterlab/notebook';
import type { Notebook } from '@jupyterlab/notebook';
import { NBTestUtils } from '@jupyterlab/notebook/lib/testutils';
import { Widget } from '@lumino/widgets';
import { CellNeighbours } from '../../ui/cellneighbours';
import { element } from '../../ui/elements';
import { settle } from '../fakes';

describe('CellNeighbours', () => {
  let notebook: Notebook;
  let places: CellNeighbours;

  beforeEach(async () => {
    jest.useFakeTimers();
    // Yjs warns of each cell that JupyterLab makes before it is in a document.
    jest.spyOn(console, 'warn').mockReturnValue();
    document.elementFromPoint = () => null;
    notebook = NBTestUtils.createNotebook();
    notebook.model = new NotebookModel();
    Widget.attach(notebook, document.body);
    const cell = (id: string) => ({ cell_type: 'code', source: '', id });
    notebook.model.sharedModel.deleteCell(0);
    notebook.model.sharedModel.insertCells(0, ['a', 'b', 'c'].map(cell));
    await settle();
    places = new CellNeighbours(notebook);
  });

  afterEach(() => {
    places.dispose();
    notebook.dispose();
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  /** A widget with something that takes the keyboard. */
  function widget(text: string): Widget {
    const made = new Widget();
    made.node.append(element('button', '', text));
    return made;
  }

  const cell = (id: string): Cell =>
    notebook.widgets.find(({ model }) => model.id === id)!;

  /** What stands above or below a cell, from top to bottom. */
  function beside(id: string, side: 'above' | 'below'): string[] {
    const slot = cell(id).node.querySelector(`:scope > [data-side=${side}]`);
    const buttons = slot?.querySelectorAll('button') ?? [];
    return Array.from(buttons, each => each.textContent ?? '');
  }

  it('shows each widget at its place, in their order', () => {
    places.add(widget('2'), { after: 'a' }, '2');
    places.add(widget('1'), { after: 'a' }, '1');
    places.add(widget('3'), { before: 'b' }, '3');
    places.add(widget('4'), 'end', '4');
    places.add(widget('5'), { cell: 'gone' }, '5');
    places.add(widget('6'), { after: 'a', follows: ['gone', 'b'] }, '6');
    expect(beside('a', 'below')).toEqual(['1', '2']);
    expect(beside('b', 'above')).toEqual(['3']);
    expect(beside('c', 'below')).toEqual(['4', '5']);
    expect(beside('b', 'below')).toEqual(['6']);
    expect(cell('b').node.firstElementChild!.textContent).toBe('3');
  });

  it('moves a widget with its cell, and the keyboard with it', async () => {
    const made = widget('x');
    places.add(made, { after: 'a' }, 'x');
    made.node.querySelector('button')!.focus();
    notebook.model!.sharedModel.moveCell(0, 2);
    expect(notebook.widgets.map(({ model }) => model.id)).toEqual([
      'b',
      'c',
      'a'
    ]);
    expect(beside('a', 'below')).toEqual(['x']);
    await settle();
    expect(made.isAttached).toBe(true);
    expect(document.activeElement?.textContent).toBe('x');
  });

  it('keeps a widget at the end when cells come and go', () => {
    const made = widget('x');
    places.add(made, { after: 'a' }, 'x');
    places.add(widget('end'), 'end', 'y');
    notebook.model!.sharedModel.deleteCell(0);
    expect(beside('c', 'below')).toEqual(['x', 'end']);
    notebook.model!.sharedModel.deleteCellRange(0, 2);
    expect(notebook.widgets).toHaveLength(0);
    expect(notebook.outerNode.contains(made.node)).toBe(true);
    const id = 'd';
    notebook.model!.sharedModel.insertCell(0, { cell_type: 'markdown', id });
    expect(beside(id, 'below')).toEqual(['x', 'end']);
    expect(made.isDisposed).toBe(false);
  });

  it('leaves nothing of a widget that is disposed', () => {
    const made = widget('x');
    places.add(made, { cell: 'b' }, 'x');
    made.dispose();
    expect(cell('b').node.querySelector('[data-side]')).toBeNull();
    const other = widget('y');
    places.add(other, { cell: 'b' }, 'y');
    places.dispose();
    expect(other.isDisposed).toBe(true);
  });
});
