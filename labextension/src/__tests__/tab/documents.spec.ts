import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { INotebookContent } from '@jupyterlab/nbformat';
import { Signal } from '@lumino/signaling';
import type { Channel } from '../../api/channel';
import type {
  NotebookRequest,
  INotebookReply,
  IOpenNotebook
} from '../../api/changes';
import { OpenDocuments } from '../../tab/documents';
import { FakeContents, FakeContext, FakePanel } from '../openpanel';

class FakeTracker {
  forEach(each: (panel: FakePanel) => void): void {
    this.panels.forEach(each);
  }

  panels: FakePanel[] = [];
  widgetAdded = new Signal<this, FakePanel>(this);
}

class FakeChannel {
  connect(): void {
    this.isConnected = true;
  }

  announce(shown: IOpenNotebook[]): void {
    this.sent.push(['announce', shown.map(({ path }) => path)]);
    this.shown = shown;
  }

  answer(id: number, { status }: INotebookReply): void {
    this.sent.push(['answer', id, status]);
  }

  isConnected = false;
  sent: unknown[] = [];
  shown: IOpenNotebook[] = [];
  asked = new Signal<this, NotebookRequest>(this);
  opened = new Signal<this, void>(this);
}

describe('OpenDocuments', () => {
  let tracker: FakeTracker;
  let channel: FakeChannel;
  let scheduled: Signal<object, ReturnType<typeof inCell>>;

  /** What JupyterLab tells of a cell that a person is about to run. */
  const inCell = ({ model }: FakeContext, index: number) => ({
    notebook: { model },
    cell: { model: model.cells.get(index) } as unknown as Cell
  });
  const newDocuments = () =>
    new OpenDocuments({
      tracker: tracker as unknown as INotebookTracker,
      contents: new FakeContents().manager,
      channel: channel as unknown as Channel,
      scheduled
    });
  const open = async (panel: FakePanel) => {
    tracker.widgetAdded.emit(panel);
    await jest.advanceTimersByTimeAsync(50);
  };

  beforeEach(() => {
    jest.useFakeTimers();
    jest.spyOn(console, 'warn').mockImplementation();
    tracker = new FakeTracker();
    channel = new FakeChannel();
    scheduled = new Signal({});
    newDocuments();
  });

  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('does nothing while no notebook is open', () => {
    jest.runAllTimers();
    expect(channel.isConnected).toBe(false);
    expect(channel.sent).toEqual([]);
  });

  it('knows notebooks that were open before it', async () => {
    tracker.panels = [new FakePanel(new FakeContext())];
    newDocuments();
    await jest.advanceTimersByTimeAsync(50);
    expect(channel.shown.map(({ path }) => path)).toEqual(['a.ipynb']);
  });

  it('announces what is opened, changed and closed', async () => {
    const context = new FakeContext();
    const panel = new FakePanel(context);
    await open(panel);
    expect(channel.isConnected).toBe(true);
    expect(channel.sent).toEqual([['announce', ['a.ipynb']]]);
    context.path = 'b.ipynb';
    context.pathChanged.emit('b.ipynb');
    context.pathChanged.emit('b.ipynb');
    await jest.advanceTimersByTimeAsync(50);
    expect(channel.sent.slice(1)).toEqual([['announce', ['b.ipynb']]]);
    panel.close();
    await jest.advanceTimersByTimeAsync(50);
    expect(channel.sent.slice(2)).toEqual([['announce', []]]);
  });

  it('announces all again to a new socket', async () => {
    await open(new FakePanel(new FakeContext('a.ipynb')));
    await open(new FakePanel(new FakeContext('b.ipynb')));
    channel.sent = [];
    channel.opened.emit();
    expect(channel.sent).toEqual([['announce', ['a.ipynb', 'b.ipynb']]]);
  });

  it('takes two views of a notebook for one', async () => {
    const context = new FakeContext();
    const panels = [new FakePanel(context), new FakePanel(context)];
    await open(panels[0]);
    await open(panels[1]);
    expect(channel.shown).toHaveLength(1);
    panels[0].close();
    await jest.advanceTimersByTimeAsync(50);
    expect(channel.shown).toHaveLength(1);
  });

  it('tells of drives only that are the server’s own', async () => {
    const collaborative = new FakeContext('RTC:c.ipynb', {
      collaborationEnabled: true
    });
    await open(new FakePanel(new FakeContext('elsewhere:x.ipynb')));
    await open(new FakePanel(collaborative));
    expect(channel.shown).toMatchObject([
      { path: 'c.ipynb', collaborative: true }
    ]);
  });

  it('does not take a notebook that was closed before it was read', async () => {
    const context = new FakeContext();
    context.isDisposed = true;
    await open(new FakePanel(context));
    expect(channel.isConnected).toBe(false);
  });

  it('has the notebook answer that is asked', async () => {
    await open(new FakePanel(new FakeContext('a.ipynb')));
    await open(new FakePanel(new FakeContext('b.ipynb')));
    const asked = { op: 'read' as const, panel: channel.shown[1].panel };
    channel.sent = [];
    channel.asked.emit({ ...asked, id: 1 });
    channel.asked.emit({ ...asked, id: 2, panel: 'none' });
    await jest.advanceTimersByTimeAsync(0);
    expect(channel.sent).toContainEqual(['answer', 1, 'ok']);
    expect(channel.sent).toContainEqual(['answer', 2, 'gone']);
  });

  it('answers at once, after it has announced what a change has led to', async () => {
    await open(new FakePanel(new FakeContext('a.ipynb')));
    const { panel } = channel.shown[0];
    channel.sent = [];
    channel.asked.emit({
      op: 'apply',
      id: 1,
      panel,
      changes: [{ op: 'delete', cell_id: 'a' }],
      expected: { cells: {}, order: null }
    });
    // At once: what waits for a promise comes after JupyterLab has drawn.
    expect(channel.sent).toEqual([
      ['announce', ['a.ipynb']],
      ['answer', 1, 'ok']
    ]);
    expect(channel.shown[0].dirty).toBe(true);
  });

  it('knows which cells a person runs in which notebook', async () => {
    const contexts = [new FakeContext('a.ipynb'), new FakeContext('b.ipynb')];
    for (const context of contexts) {
      context.model.cells.get(0).setMetadata('agent_exec', {
        execution_id: 'x'
      });
      await open(new FakePanel(context));
    }
    scheduled.emit(inCell(contexts[1], 0));
    const output = { output_type: 'stream', name: 'stdout', text: '1' };
    for (const [id, { panel }] of channel.shown.entries()) {
      channel.asked.emit({
        op: 'apply',
        id,
        panel,
        changes: [
          { op: 'set_outputs', cell_id: 'a', changes: [{ index: 0, output }] }
        ],
        expected: { cells: {}, order: null }
      });
    }
    await jest.advanceTimersByTimeAsync(0);
    expect(channel.sent).toContainEqual(['answer', 1, 'ok']);
    const outputs = contexts.map(
      ({ model }) => (model.toJSON() as INotebookContent).cells[0].outputs
    );
    expect(outputs).toEqual([[output], []]);
  });
});
