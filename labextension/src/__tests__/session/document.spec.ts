import type { ICodeCellModel } from '@jupyterlab/cells';
import type { ServerConnection } from '@jupyterlab/services';
import { NotebookModel } from '@jupyterlab/notebook';
import type { INotebookContent } from '@jupyterlab/nbformat';
import { nullTranslator } from '@jupyterlab/translation';
import { LiveModel } from '../../live/live';
import { PAGE } from '../../api/client';
import { FIRST_PAGE, SessionModel } from '../../live/session';
import { SessionDocument } from '../../session/document';
import { SessionDrive } from '../../session/drive';
import type { IExecution } from '../../tokens';
import { pathOf, sessionIn } from '../../ui/sessionpaths';
import { execution, FakeServer, session, settle, stdout } from '../fakes';

/** A drive of a server with a session of these executions. */
function driveOf(executions: IExecution[] = [], isOpening = false) {
  const server = new FakeServer();
  server.sessions = [session()];
  server.executions = executions;
  const live = new LiveModel(server, server.events);
  const shown = new SessionModel('s_1', live);
  const drive = new SessionDrive({
    api: server,
    isOpening: () => isOpening,
    languageOf: async name => `the language of ${name}`,
    open: () => shown,
    serverSettings: {} as ServerConnection.ISettings,
    trans: nullTranslator.load('')
  });
  return { drive, server, shown };
}

/** The notebook of a session with these executions. */
async function open(executions: IExecution[] = []) {
  const { drive, server, shown } = driveOf(executions, true);
  const { content } = await drive.get('s_1/Sales.ipynb');
  const model = new NotebookModel();
  model.fromJSON(content as INotebookContent);
  model.sharedModel.clearUndoHistory(); // as the context does
  const document = new SessionDocument(model, shown);
  shown.follow();
  await settle();
  const cells = () => Array.from(model.cells) as ICodeCellModel[];
  const ids = () => cells().map(({ id }) => id);
  const read = async () => {
    shown.requestSync(true);
    await settle();
  };
  return { cells, document, ids, model, read, server, shown };
}

describe('a session’s path', () => {
  it('leads to the session, whatever its title', () => {
    for (const title of ['Sales', 'a/b: c\u202e', '::', '', null]) {
      const path = pathOf(session({ title }));
      expect(path).toMatch(/^AgentSession:s_1\/[^/:\u202e]+\.ipynb$/);
      expect(sessionIn(path)).toBe('s_1');
    }
    expect(sessionIn('s_1/Sales.ipynb')).toBeNull();
    expect(sessionIn('RTC:Sales.ipynb')).toBeNull();
  });
});

describe('SessionDrive', () => {
  it('reads a session as a notebook, all of it', async () => {
    const all = Array.from({ length: PAGE + 2 }, (_, index) =>
      execution({ seq: index + 1, source: `${index + 1}` })
    );
    const { drive } = driveOf(all);
    const file = await drive.get('s_1/Sales.ipynb');
    expect(file).toMatchObject({
      name: 'Sales.ipynb',
      type: 'notebook',
      format: 'json',
      writable: false
    });
    const { cells, metadata } = file.content as INotebookContent;
    expect(cells.map(({ source }) => source)).toEqual(
      all.map(({ source }) => source)
    );
    expect(metadata.language_info).toEqual({ name: 'the language of python3' });
    const { content } = await drive.get('s_1/Sales.ipynb', { content: false });
    expect(content).toBeNull();
  });

  it('has a sentence where nothing has run, and no cell to write in', async () => {
    const { drive } = driveOf();
    const { content } = await drive.get('s_1/Sales.ipynb');
    expect((content as INotebookContent).cells).toMatchObject([
      { cell_type: 'raw', metadata: { deletable: false, editable: false } }
    ]);
  });

  it('changes nothing, and says why', async () => {
    const { drive, server } = driveOf([execution()]);
    for (const what of [
      'save',
      'rename',
      'delete',
      'copy',
      'newUntitled',
      'createCheckpoint'
    ] as const) {
      await expect(drive[what]()).rejects.toThrow('can only be read');
    }
    expect(await drive.listCheckpoints()).toEqual([]);
    expect(await drive.getDownloadUrl('s_1/a.ipynb')).toBe('notebook of s_1');
    expect(server.calls).toEqual([]);
  });

  it('tells that a session does not exist', async () => {
    const { drive } = driveOf();
    await expect(drive.get('s_2/Gone.ipynb')).rejects.toThrow();
  });
});

describe('SessionDocument', () => {
  beforeEach(() => {
    jest.useFakeTimers();
    // Yjs warns of each cell that JupyterLab makes before it is in a document.
    jest.spyOn(console, 'warn').mockReturnValue();
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('begins with the first executions, and gets the rest at once', async () => {
    const all = Array.from({ length: FIRST_PAGE + 3 }, (_, index) =>
      execution({ seq: index + 1 })
    );
    const { drive } = driveOf(all, true);
    const { content } = await drive.get('s_1/Sales.ipynb');
    expect((content as INotebookContent).cells).toHaveLength(FIRST_PAGE);
    const { ids } = await open(all);
    expect(ids()).toEqual(all.map(({ id }) => id));
  });

  it('gets a cell for each execution, in order, as they come', async () => {
    const { ids, read, server } = await open([execution()]);
    server.put(execution({ seq: 2 }), execution({ seq: 3 }));
    await read();
    expect(ids()).toEqual(['x_1', 'x_2', 'x_3']);
  });

  it('has the first execution in place of the sentence', async () => {
    const { ids, read, server } = await open();
    expect(ids()).toHaveLength(1);
    server.put(execution());
    await read();
    expect(ids()).toEqual(['x_1']);
  });

  it('trusts nothing, whatever an execution says', async () => {
    const { cells, model, read, server } = await open([
      execution({ cell: { metadata: { trusted: true }, outputs: [] } })
    ]);
    server.put(execution({ seq: 2 }));
    await read();
    expect(cells()[0].trusted).toBe(false);
    expect(cells()[0].getMetadata('trusted')).toBeUndefined();
    expect(model.sharedModel.canUndo()).toBe(false);
  });

  it('is read-only and never dirty, while it changes', async () => {
    const { model, read, server } = await open([execution()]);
    expect(model.readOnly).toBe(true);
    expect(model.dirty).toBe(false);
    server.put(execution({ status: 'error' }), execution({ seq: 2 }));
    await read();
    expect(model.dirty).toBe(false);
    model.sharedModel.deleteCell(0);
    await settle();
    expect(model.dirty).toBe(false);
  });

  it('shows a status, a count and a source as they change', async () => {
    const { cells, read, server } = await open([
      execution({ status: 'queued', execution_count: null })
    ]);
    server.put(execution({ status: 'error', source: '2', execution_count: 7 }));
    await read();
    const [cell] = cells();
    expect(cell.getMetadata('agent_exec')).toMatchObject({ status: 'error' });
    expect(cell.executionCount).toBe(7);
    expect(cell.sharedModel.getSource()).toBe('2');
  });

  it('follows outputs as they come, and leaves them when it has ended', async () => {
    const { cells, read, server } = await open([
      execution({ status: 'running' })
    ]);
    const stream = server.streams.get('x_1');
    const tell = (change: object) =>
      stream?.tell('output', { index: 0, ...change });
    tell({ output: stdout('a') });
    await settle();
    tell({ append: 'b' });
    await settle();
    const texts = () => cells()[0].outputs.toJSON();
    expect(texts()).toEqual([stdout('ab')]);
    const done = execution({ cell: { outputs: [stdout('ab')] } });
    stream?.tell('finished', done);
    await settle();
    server.put(done);
    await read();
    expect(texts()).toEqual([stdout('ab')]);
  });

  it('shows outputs again that JupyterLab cleared for want of a kernel', async () => {
    const { cells } = await open([
      execution({ cell: { outputs: [stdout('a')] } })
    ]);
    cells()[0].clearExecution();
    await settle();
    expect(cells()[0].outputs.toJSON()).toEqual([stdout('a')]);
    expect(cells()[0].executionCount).toBe(1);
    expect(cells()[0].trusted).toBe(false);
  });

  it('has something in place of what was left out, until it is opened', async () => {
    const left_out = [{ index: 0, bytes: 9000, mimetypes: ['text/plain'] }];
    const { cells, server, shown } = await open([
      execution({ cell: { outputs: [stdout(''), stdout('after')] }, left_out })
    ]);
    const types = () =>
      cells()[0]
        .outputs.toJSON()
        .map(each => each.output_type);
    expect(types()).toEqual(['display_data', 'stream']);
    server.put(
      execution({ cell: { outputs: [stdout('large'), stdout('after')] } })
    );
    await shown.find('x_1')?.openOutput(0, server);
    await settle();
    expect(cells()[0].outputs.toJSON()).toEqual([stdout('largeafter')]);
  });

  it('says what the server held back, also of what it left out', async () => {
    const plotly = 'application/vnd.plotly.v1+json';
    const record = { outputs: 'held', held: ['text/html'] };
    const { cells } = await open([
      execution({
        cell: { metadata: { agent_exec: record }, outputs: [stdout('')] },
        left_out: [{ index: 0, bytes: 9000, mimetypes: [plotly] }]
      })
    ]);
    expect(cells()[0].getMetadata('agent_exec')).toMatchObject({
      outputs: 'held',
      held: ['text/html', plotly]
    });
  });

  it('lets go of everything when it is disposed', async () => {
    const { document, ids, read, server } = await open([execution()]);
    document.dispose();
    server.put(execution({ seq: 2 }));
    await read();
    expect(ids()).toEqual(['x_1']);
  });
});
