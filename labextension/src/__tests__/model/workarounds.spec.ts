import { type DocumentRegistry, DocumentWidget } from '@jupyterlab/docregistry';
import { createFileContextWithMockedServices } from '@jupyterlab/docregistry/lib/testutils';
import { NotebookModel } from '@jupyterlab/notebook';
import { NBTestUtils } from '@jupyterlab/notebook/lib/testutils';
import { ServiceManagerMock } from '@jupyterlab/services/lib/testutils';
import { Widget } from '@lumino/widgets';
import { allowOtherTitle, cellPlaces } from '../../model/workarounds';

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

describe('allowOtherTitle', () => {
  let context: DocumentRegistry.Context;
  let widget: DocumentWidget;
  let renamed: string[];

  beforeEach(async () => {
    const manager = new ServiceManagerMock();
    context = await createFileContextWithMockedServices(false, manager);
    renamed = [];
    manager.contents.fileChanged.connect((_, { type, newValue }) => {
      if (type === 'rename') {
        renamed.push(newValue!.path!);
      }
    });
    widget = new DocumentWidget({ content: new Widget(), context });
  });

  afterEach(() => widget.dispose());

  const settle = () => new Promise(resolve => setTimeout(resolve, 50));

  it('keeps the file when its tab gets another label', async () => {
    allowOtherTitle(widget);
    widget.title.label = 'another';
    await settle();
    expect(renamed).toEqual([]);
    expect(widget.title.label).toBe('another');
  });

  it('lets the user rename the file', async () => {
    allowOtherTitle(widget);
    await context.rename('renamed.txt');
    expect(renamed).toEqual(['renamed.txt']);
  });

  it('is still needed', async () => {
    widget.title.label = 'another';
    await settle();
    expect(renamed).toEqual(['another']);
  });
});
