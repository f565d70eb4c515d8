import {
  CodeMirrorEditorFactory,
  CodeMirrorMimeTypeService,
  EditorExtensionRegistry,
  EditorLanguageRegistry
} from '@jupyterlab/codemirror';
import type { ICodeCellModel } from '@jupyterlab/cells';
import {
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { ApprovalsModel } from '../../live/approvals';
import { PAGE, SessionModel } from '../../live/session';
import { SessionNotebook } from '../../panel/notebook';
import type { IExecution } from '../../tokens';
import { Clock } from '../../ui/clock';
import { execution, FakeServer, session, settle, stdout } from '../fakes';

/** The notebook of a session with these executions. */
async function open(executions: IExecution[]) {
  const server = new FakeServer();
  server.executions = executions;
  const model = new SessionModel('s_1', server, session());
  const languages = new EditorLanguageRegistry();
  const extensions = new EditorExtensionRegistry();
  const lost = new Signal<object, Error>({});
  const options = {
    api: server,
    approvals: new ApprovalsModel(server, server.events, lost),
    clock: new Clock(() => 0),
    editors: {
      factoryService: new CodeMirrorEditorFactory({ extensions, languages }),
      mimeTypeService: new CodeMirrorMimeTypeService(languages)
    },
    rendermime: new RenderMimeRegistry({
      initialFactories: standardRendererFactories
    }),
    specs: () => null,
    trans: nullTranslator.load('')
  };
  const notebook = new SessionNotebook({
    ...options,
    approvals: options,
    execute: async () => undefined,
    languageOf: () => 'python',
    onError: error => {
      throw error;
    },
    openMenu: () => undefined,
    session: model,
    translator: nullTranslator
  });
  model.isActive = true;
  await settle();
  const cells = () =>
    notebook.widgets.map(({ model }) => model as ICodeCellModel);
  const ids = () => cells().map(({ id }) => id);
  const read = async () => {
    model.requestSync(true);
    await settle();
  };
  return { cells, ids, model, notebook, read, server };
}

describe('SessionNotebook', () => {
  beforeEach(() => {
    jest.useFakeTimers();
    // Yjs warns of each cell that JupyterLab makes before it is in a document.
    jest.spyOn(console, 'warn').mockReturnValue();
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('has a cell for each execution, in order, as more of them are known', async () => {
    const all = Array.from({ length: PAGE + 2 }, (_, index) =>
      execution({ seq: index + 1, source: `${index + 1}` })
    );
    const { cells, ids, model, notebook, read, server } = await open(
      all.slice(0, -1)
    );
    expect(ids()).toEqual(all.slice(1, -1).map(({ id }) => id));
    server.put(all[PAGE + 1]);
    await read();
    await model.readEarlier();
    expect(ids()).toEqual(all.map(({ id }) => id));
    expect(cells()[0].sharedModel.getSource()).toBe('1');
    expect(notebook.widgets[2].node.getAttribute('aria-label')).toBe(
      'Cell 3: Done'
    );
  });

  it('has no cell before there is an execution', async () => {
    const { ids, notebook, read, server } = await open([]);
    expect(notebook.model).toBeNull();
    server.put(execution());
    await read();
    expect(ids()).toEqual(['x_1']);
  });

  it('trusts nothing, whatever an execution says, and can only be read', async () => {
    const { cells, notebook } = await open([
      execution({ cell: { metadata: { trusted: true }, outputs: [] } })
    ]);
    const [cell] = cells();
    expect(cell.trusted).toBe(false);
    expect(cell.getMetadata('trusted')).toBeUndefined();
    expect(cell.getMetadata('editable')).toBe(false);
    expect(notebook.widgets[0].readOnly).toBe(true);
    expect(notebook.model?.sharedModel.canUndo()).toBe(false);
    expect(notebook.node.dataset.lmSuppressShortcuts).toBe('true');
    expect(notebook.node.dataset.jpSuppressContextMenu).toBe('true');
  });

  it('shows a status, a count and a source as they change', async () => {
    const { cells, notebook, read, server } = await open([
      execution({ status: 'queued', execution_count: null })
    ]);
    expect(cells()[0].getMetadata('agent_exec')).toMatchObject({
      status: 'queued'
    });
    server.put(execution({ status: 'error', source: '2', execution_count: 7 }));
    await read();
    const [cell] = cells();
    expect(cell.getMetadata('agent_exec')).toMatchObject({ status: 'error' });
    expect(cell.executionCount).toBe(7);
    expect(cell.sharedModel.getSource()).toBe('2');
    expect(notebook.widgets[0].node.dataset.status).toBe('error');
  });

  it('shows outputs as they come, and leaves them when it has ended', async () => {
    const { cells, read, server } = await open([
      execution({ status: 'running' })
    ]);
    const stream = server.streams.get('x_1');
    const tell = (change: object) =>
      stream?.tell({ kind: 'output', change: { index: 0, ...change } });
    tell({ output: stdout('a') });
    await settle();
    tell({ append: 'b' });
    tell({ append: 'c' });
    await settle();
    const texts = () => cells()[0].outputs.toJSON();
    expect(texts()).toEqual([stdout('abc')]);
    const left_out = [{ index: 0, bytes: 9000, mimetypes: ['text/plain'] }];
    const done = execution({ cell: { outputs: [stdout('abc')] } });
    stream?.tell({ kind: 'execution', execution: done, finished: true });
    stream?.end();
    await settle();
    server.put(done, execution({ seq: 2, cell: { outputs: [] }, left_out }));
    await read();
    expect(texts()).toEqual([stdout('abc')]);
  });

  it('has something in place of what was left out, until it is opened', async () => {
    const left_out = [{ index: 0, bytes: 9000, mimetypes: ['text/plain'] }];
    const { cells, model, server } = await open([
      execution({
        cell: { outputs: [stdout(''), stdout('after')] },
        left_out
      })
    ]);
    const outputs = () => cells()[0].outputs.toJSON();
    expect(outputs().map(each => each.output_type)).toEqual([
      'display_data',
      'stream'
    ]);
    server.put(
      execution({ cell: { outputs: [stdout('large'), stdout('after')] } })
    );
    await model.find('x_1')?.openOutput(0, server);
    await settle();
    expect(cells()[0].outputs.get(0).data).toEqual({
      'application/vnd.jupyter.stdout': 'largeafter'
    });
  });

  it('lets go of everything when it is disposed', async () => {
    const { model, notebook, read, server } = await open([execution()]);
    const shown = notebook.model;
    notebook.dispose();
    notebook.dispose();
    expect(shown?.isDisposed).toBe(true);
    server.put(execution({ status: 'error' }), execution({ seq: 2 }));
    await read();
    expect(model.executions).toHaveLength(2);
  });
});
