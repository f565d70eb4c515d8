import { NotebookModel } from '@jupyterlab/notebook';
import type { Notebook } from '@jupyterlab/notebook';
import { NBTestUtils } from '@jupyterlab/notebook/lib/testutils';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { cellPlaces, drawLater } from '../../ui/workarounds';

describe('cellPlaces', () => {
  // Yjs warns of each cell that JupyterLab makes before it is in a document.
  beforeEach(() => void jest.spyOn(console, 'warn').mockReturnValue());
  afterEach(() => jest.restoreAllMocks());

  it('tells where the cells of a notebook are', () => {
    const notebook = NBTestUtils.createNotebook();
    notebook.model = new NotebookModel();
    const cell = { cell_type: 'code', source: '' };
    notebook.model.sharedModel.insertCells(0, [cell, cell, cell]);
    const places = cellPlaces(notebook);
    expect(places.widgetCount).toBe(notebook.widgets.length);
    expect(places.windowingActive).toBe(false);
    expect(places.scrollOffset).toBe(0);
    const [top, height] = places.getSpan(1, 1);
    expect(top).toBeGreaterThan(0);
    expect(height).toBeGreaterThan(0);
    notebook.dispose();
  });
});

describe('drawLater', () => {
  beforeEach(() => void jest.spyOn(console, 'warn').mockReturnValue());
  afterEach(() => jest.restoreAllMocks());

  const cell = { cell_type: 'code', source: '' };
  const isUndrawn = (notebook: Notebook) =>
    notebook.widgets.map(each => each.isPlaceholder());
  /** One that stays: JupyterLab goes on drawing it for some frames. */
  const newNotebook = () => {
    const notebook = NBTestUtils.createNotebook();
    notebook.notebookConfig = {
      ...notebook.notebookConfig,
      windowingMode: 'contentVisibility'
    };
    notebook.model = new NotebookModel();
    notebook.model.sharedModel.insertCells(0, [cell, cell]);
    Widget.attach(notebook, document.body);
    MessageLoop.clearData(notebook); // it is not drawn yet
    return notebook;
  };

  it('draws nothing at once, and what comes after it as ever', async () => {
    const notebook = newNotebook();
    const { sharedModel } = notebook.model!;
    expect(drawLater(notebook, () => sharedModel.addCell(cell))).toBe(true);
    await Promise.resolve();
    await Promise.resolve();
    expect(isUndrawn(notebook)).not.toContain(false);
    notebook.update();
    await Promise.resolve();
    expect(isUndrawn(notebook)).toContain(false);
  });

  it('is needed while JupyterLab draws as soon as a cell comes', async () => {
    const notebook = newNotebook();
    notebook.model!.sharedModel.addCell(cell);
    await Promise.resolve();
    expect(isUndrawn(notebook)).toContain(false);
  });
});
