import type { ICodeCellModel } from '@jupyterlab/cells';
import { PromiseDelegate } from '@lumino/coreutils';
import type { NotebookRequest, Change, IExpected } from '../../api/changes';
import { OpenDocument } from '../../tab/document';
import type { IOutputChange } from '../../tokens';
import { stdout } from '../fakes';
import { FakeContents, FakeContext, FakePanel } from '../openpanel';

const ANY: IExpected = { cells: {}, order: null };
const END = { after: null, before: null };
const TEXT = { cell_type: 'markdown', id: 'n', source: '#', metadata: {} };
const OK = { status: 'ok' };
const PUT: Change = { op: 'put', cell: TEXT, at: END };

describe('OpenDocument', () => {
  let contents: FakeContents;
  let context: FakeContext;
  let panel: FakePanel;
  let opened: OpenDocument;

  /** Ask for something, by the op alone where that says all. */
  const ask = (op: 'read' | 'save' | 'reload') =>
    opened.handle({ op, id: 1, panel: opened.id } as NotebookRequest);
  const apply = (changes: Change[], expected = ANY) =>
    opened.handle({ op: 'apply', id: 1, panel: opened.id, changes, expected });
  /** Changes that put an agent's cell, as the server does. */
  const put = (
    id: string,
    execution_state: 'idle' | 'running' = 'idle'
  ): Change[] => [
    {
      op: 'put',
      cell: { ...TEXT, cell_type: 'code', id, outputs: [] },
      at: END
    },
    {
      op: 'set_cell',
      cell_id: id,
      agent_exec: { execution_id: id },
      execution_count: 1,
      execution_state,
      trusted: true
    }
  ];
  /** What a person does. */
  const edit = () =>
    context.model.cells.get(0).sharedModel.updateSource(0, 0, 'x');
  /** Have a save go on until it is released. */
  const hold = () => {
    const held = new PromiseDelegate<void>();
    context.saving = held.promise;
    return { saved: context.save(), release: () => held.resolve() };
  };
  /** Let so many milliseconds pass. */
  const pass = (time: number) => jest.advanceTimersByTimeAsync(time);

  beforeEach(() => {
    jest.useFakeTimers();
    jest.spyOn(console, 'warn').mockImplementation();
    contents = new FakeContents();
    context = new FakeContext();
    panel = new FakePanel(context);
    opened = new OpenDocument(context.real, contents.manager);
    opened.addPanel(panel.real);
  });

  afterEach(() => {
    opened.dispose();
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  describe('what is shown', () => {
    it('tells the server how it is', async () => {
      context.path = 'RTC:b.ipynb';
      await pass(2000);
      expect(opened.shown()).toEqual({
        panel: opened.id,
        path: 'b.ipynb',
        collaborative: false,
        dirty: false,
        only_agents: true,
        unused_seconds: 2,
        kernel_starting: false,
        hash: '1'
      });
      context.contentsModel = null;
      context.sessionContext.kernelDisplayStatus = 'initializing';
      expect(opened.shown()).toMatchObject({
        hash: null,
        kernel_starting: true
      });
    });

    it('lets nothing run that undo brings back', async () => {
      const { cells, sharedModel } = context.model;
      await apply(put('x_1', 'running'));
      const state = () =>
        (cells.get(cells.length - 1) as ICodeCellModel).executionState;
      expect(state()).toBe('running');
      sharedModel.deleteCell(cells.length - 1);
      sharedModel.undo();
      expect(state()).toBe('idle');
    });

    it('says when it changes', () => {
      const changed = jest.fn();
      opened.changed.connect(changed);
      context.pathChanged.emit('c.ipynb');
      context.fileChanged.emit();
      context.sessionContext.kernelChanged.emit();
      context.sessionContext.kernelPreferenceChanged.emit();
      expect(changed).toHaveBeenCalledTimes(4);
      edit();
      expect(changed).toHaveBeenCalledTimes(5);
      edit();
      expect(changed).toHaveBeenCalledTimes(5);
    });

    it.each(['pointerdown', 'keydown'])('knows of use by %s', async type => {
      const changed = jest.fn();
      opened.changed.connect(changed);
      await pass(5000);
      panel.use(type);
      panel.use(type);
      expect(opened.shown().unused_seconds).toBe(0);
      expect(changed).toHaveBeenCalledTimes(1);
    });

    it('ends with its last panel', () => {
      const second = new FakePanel(context);
      const disposed = jest.fn();
      opened.disposed.connect(disposed);
      opened.addPanel(second.real);
      panel.close();
      expect(opened.isDisposed).toBe(false);
      context.model.dispose(); // as its notebook does first
      second.close();
      expect(disposed).toHaveBeenCalledTimes(1);
      expect(opened.isDisposed).toBe(true);
    });
  });

  describe('whose unsaved changes are', () => {
    it.each<[string, boolean, () => unknown]>([
      ["an agent's", true, () => apply([PUT])],
      ["a person's", false, edit],
      [
        'other metadata',
        false,
        () => context.model.setMetadata('title', 'mine')
      ],
      [
        "JupyterLab's own, then a person's",
        false,
        () => {
          context.model.setMetadata('language_info', { name: 'julia' });
          edit();
        }
      ],
      [
        "an agent's, then a person's",
        false,
        async () => {
          await apply([PUT]);
          edit();
        }
      ],
      [
        "a person's, then an agent's",
        false,
        async () => {
          edit();
          await apply([PUT]);
        }
      ]
    ])('is told: %s', async (_, onlyAgents, change) => {
      await change();
      expect(opened.shown()).toMatchObject({
        dirty: true,
        only_agents: onlyAgents
      });
      context.model.dirty = false;
      expect(opened.shown().only_agents).toBe(true);
    });

    it("is nobody's when JupyterLab has set the kernel's metadata", async () => {
      context.model.setMetadata('language_info', { name: 'julia' });
      expect(context.model.dirty).toBe(true);
      expect(opened.shown().dirty).toBe(false);
      expect(await ask('save')).toEqual({ status: 'ok' });
      expect(context.saves).toBe(0);
      await apply([PUT]);
      expect(opened.shown()).toMatchObject({ dirty: true, only_agents: true });
    });

    it('is taken for the person when it was unsaved before', () => {
      edit();
      const late = new OpenDocument(context.real, contents.manager);
      expect(late.shown().only_agents).toBe(false);
      late.dispose();
    });
  });

  describe('changes', () => {
    it('are made', async () => {
      expect(await apply([PUT])).toEqual({ status: 'ok' });
      const { notebook } = await ask('read');
      expect(notebook?.cells.map(({ id }) => id)).toEqual(['a', 'b', 'n']);
    });

    it('are not made when the notebook has moved', async () => {
      const { status } = await apply([PUT], { cells: {}, order: ['a'] });
      expect(status).toBe('moved');
      expect(context.model.dirty).toBe(false);
    });

    it.each<[string, () => void]>([
      ['file', () => (context.contentsModel = { writable: false })],
      ['notebook', () => (context.model.readOnly = true)]
    ])('are not made in a %s that cannot be saved', async (_, forbid) => {
      forbid();
      expect(await apply([PUT])).toEqual({ status: 'read_only' });
      expect(context.model.cells.length).toBe(2);
    });

    it('that go wrong are told of', async () => {
      const broken = { op: 'put', cell: null, at: END } as unknown as Change;
      expect(await apply([broken])).toMatchObject({
        status: 'failed',
        message: expect.stringContaining('TypeError')
      });
      edit();
      expect(opened.shown().only_agents).toBe(false);
    });

    it('leave the active cell active', async () => {
      panel.content.activeCellIndex = 1;
      panel.content.mode = 'edit';
      await apply([{ op: 'put', cell: TEXT, at: { ...END, before: 'a' } }]);
      expect(panel.content.activeCell.model.id).toBe('b');
      expect(panel.content.mode).toBe('edit');
      await apply([{ op: 'delete', cell_id: 'b' }]);
      expect(panel.content.activeCellIndex).toBe(2);
    });

    it('that come during a save that takes long are unsaved after it', async () => {
      const { release, saved } = hold();
      const applied = apply([PUT]);
      await pass(2001);
      await applied;
      release();
      await saved;
      expect(opened.shown()).toMatchObject({ dirty: true, only_agents: true });
      await context.save();
      expect(context.model.dirty).toBe(false);
    });

    it('that come during a save beside edits are not only from agents', async () => {
      edit();
      const { release, saved } = hold();
      const applied = apply([PUT]);
      await pass(2001);
      await applied;
      edit();
      release();
      await saved;
      expect(opened.shown()).toMatchObject({ dirty: true, only_agents: false });
    });
  });

  describe('changes that come during a save', () => {
    const outputs = (...changes: IOutputChange[]): Change => ({
      op: 'set_outputs',
      cell_id: 'a',
      changes
    });
    const text = () => context.model.cells.get(0).sharedModel.toJSON().outputs;

    it('are made after it, in order', async () => {
      const { release, saved } = hold();
      const answers = [
        apply([outputs({ index: 0, output: stdout('1') })]),
        apply([outputs({ index: 0, append: '2' })])
      ];
      await pass(1000);
      expect(text()).toEqual([]);
      release();
      await saved;
      await pass(0);
      expect(await Promise.all(answers)).toEqual([OK, OK]);
      expect(text()).toEqual([stdout('12')]);
      expect(opened.shown()).toMatchObject({ dirty: true, only_agents: true });
      expect(await apply([PUT])).toEqual(OK);
    });

    it('are made after one that fails', async () => {
      context.saveState.emit('started');
      const answered = apply([PUT]);
      context.saveState.emit('failed');
      await pass(0);
      expect(await answered).toEqual(OK);
    });

    it('are left to another way when the notebook is closed after it', async () => {
      const { release, saved } = hold();
      const closed = saved.then(() => panel.close());
      const answered = apply([PUT]);
      release();
      await closed;
      await pass(0);
      expect(await answered).toEqual({ status: 'gone' });
      expect(context.model.cells.length).toBe(2);
    });

    it('are left to another way when it is closed before that has ended', async () => {
      hold();
      const answered = apply([PUT]);
      panel.close();
      await pass(0);
      expect(await answered).toEqual({ status: 'gone' });
    });

    it('wait for the last one of several', async () => {
      const { release, saved } = hold();
      context.saveState.emit('started');
      const answered = apply([PUT]);
      release();
      await saved;
      await pass(1000);
      expect(context.model.cells.length).toBe(2);
      context.saveState.emit('completed');
      await pass(0);
      expect(await answered).toEqual(OK);
    });

    it('wait once only for one that never tells of its end', async () => {
      context.saveState.emit('started');
      const answered = apply([PUT]);
      await pass(1999);
      expect(context.model.cells.length).toBe(2);
      await pass(2);
      expect(await answered).toEqual(OK);
      expect(await apply([{ op: 'delete', cell_id: 'a' }])).toEqual(OK);
    });
  });

  describe('saving', () => {
    it('is done for agents', async () => {
      await apply([PUT]);
      expect(await ask('save')).toEqual({ status: 'ok' });
      expect(context.saves).toBe(1);
    });

    it('is not needed when nothing is unsaved', async () => {
      expect(await ask('save')).toEqual({ status: 'ok' });
      expect(context.saves).toBe(0);
    });

    it.each<[string, () => void]>([
      ['there are edits of a person', edit],
      ['the file has changed', () => (contents.file = { hash: '2' })],
      [
        'a file without hash has changed',
        () => (contents.file = { last_modified: 't2' })
      ]
    ])('is left to the person when %s', async (_, happen) => {
      await apply([PUT]);
      happen();
      expect((await ask('save')).status).toBe('moved');
      expect(context.saves).toBe(0);
    });

    it('that takes too long is not waited for', async () => {
      await apply([PUT]);
      let fail: (error: Error) => void = () => undefined;
      context.saving = new Promise((_, reject) => {
        fail = reject;
      });
      const answered = ask('save');
      await pass(4000);
      expect((await answered).status).toBe('failed');
      fail(new Error('much later'));
      await pass(0);
    });
  });

  describe('reading again', () => {
    beforeEach(() => pass(1000));

    it('is done when the file has changed', async () => {
      contents.file = { hash: '2' };
      expect(await ask('reload')).toEqual({ status: 'ok' });
      expect(context.reverts).toBe(1);
    });

    it('is not needed when it has not', async () => {
      expect(await ask('reload')).toEqual({ status: 'ok' });
      expect(context.reverts).toBe(0);
    });

    it('does not take unsaved edits away', async () => {
      contents.file = { hash: '2' };
      edit();
      expect((await ask('reload')).status).toBe('moved');
      expect(context.reverts).toBe(0);
    });

    it('waits until nobody types', async () => {
      contents.file = { hash: '2' };
      panel.use();
      const answered = ask('reload');
      await pass(500);
      panel.use();
      await pass(999);
      expect(context.reverts).toBe(0);
      await pass(1);
      expect(await answered).toEqual({ status: 'ok' });
      expect(context.reverts).toBe(1);
    });

    it('is given up where somebody goes on typing', async () => {
      contents.file = { hash: '2' };
      panel.use();
      const answered = ask('reload');
      for (let n = 0; n < 8; n++) {
        await pass(500);
        panel.use();
      }
      expect((await answered).status).toBe('moved');
      expect(context.reverts).toBe(0);
    });
  });
});
