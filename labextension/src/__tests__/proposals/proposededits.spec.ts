import { EditorView } from '@codemirror/view';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { NotebookModel } from '@jupyterlab/notebook';
import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';
import { NBTestUtils } from '@jupyterlab/notebook/lib/testutils';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';
import { sourceHash } from '../../api/cellrecord';
import { LiveModel } from '../../live/live';
import { ProposedEdits } from '../../proposals/proposededits';
import { answerDialog } from '../dialogs';
import { createEditors, Sight } from '../editors';
import { FakeServer, proposal, proposedEdit, settle } from '../fakes';
import type { IProposalList, IProposedEdit } from '../../tokens';

const code = (source: string) => ({ cell_type: 'code' as const, source });

describe('ProposedEdits', () => {
  let notebook: Notebook;
  let header: Panel;
  let server: FakeServer;
  let shown: ProposedEdits;

  beforeEach(async () => {
    jest.useFakeTimers();
    // Yjs warns of each cell that JupyterLab makes before it is in a document.
    jest.spyOn(console, 'warn').mockReturnValue();
    document.elementFromPoint = () => null;
    notebook = NBTestUtils.createNotebook();
    notebook.model = new NotebookModel();
    Widget.attach(notebook, document.body);
    header = new Panel();
    Widget.attach(header, document.body);
    notebook.model.sharedModel.deleteCell(0);
    notebook.model.sharedModel.insertCells(
      0,
      ['a', 'b', 'c'].map(id => ({ ...code(`${id} = 1`), id }))
    );
    await settle();
    server = new FakeServer();
  });

  afterEach(() => {
    shown.dispose();
    header.dispose();
    notebook.dispose();
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  /** Show edits that an agent proposes. */
  async function propose(...edits: IProposedEdit[]): Promise<void> {
    server.proposals = [proposal(edits)];
    const context = {
      localPath: 'a.ipynb',
      ready: Promise.resolve(),
      pathChanged: new Signal({})
    };
    const panel = { content: notebook, context, contentHeader: header };
    shown = new ProposedEdits(panel as unknown as NotebookPanel, {
      editors: createEditors(),
      live: new LiveModel(server, server.events),
      trans: nullTranslator.load('')
    });
    await settle();
  }

  const edits = () =>
    Array.from(
      notebook.outerNode.querySelectorAll<HTMLElement>('.jp-AgentExecProposed')
    );

  const labels = () => edits().map(node => node.getAttribute('aria-label'));

  /** Click a button, and wait for what it does. */
  async function click(node: Element, label: string): Promise<void> {
    const buttons = Array.from(node.querySelectorAll('button'));
    buttons.find(({ textContent }) => textContent === label)!.click();
    await settle();
  }

  it('keeps code only after its end was in view, one by one or all', async () => {
    Sight.hides = true;
    await propose(
      proposedEdit({
        id: 'n',
        kind: 'insert',
        after: code(`n = 1\n${'\n'.repeat(400)}evil()`),
        follows: 'a'
      }),
      proposedEdit({ id: 'b', kind: 'delete', index: 1 })
    );
    Sight.hides = false;
    const [added] = edits();
    expect(added.textContent).toContain('402 lines, 400 of them blank');
    await click(added, 'Keep');
    expect(added.querySelector('[role=alert]')!.textContent).toMatch(
      /^To keep it, scroll/
    );
    await click(header.node, 'Keep all');
    expect(document.activeElement).toBe(added);
    expect(header.node.textContent).toContain('To keep it, scroll');
    expect(server.decided).toEqual([]);
    Sight.show();
    await click(header.node, 'Keep all');
    expect(server.decided).toHaveLength(1);
  });

  it('shows each kind of edit at its cell, and changes nothing', async () => {
    await propose(
      proposedEdit({ id: 'c', kind: 'move', index: 0 }),
      proposedEdit({
        id: 'a',
        kind: 'change',
        before: code('a = 1'),
        after: code('a = 2'),
        index: 1
      }),
      proposedEdit({
        id: 'n',
        kind: 'insert',
        after: code('n = 1'),
        follows: 'a',
        index: 2
      }),
      proposedEdit({ id: 'b', kind: 'delete', index: 3 })
    );
    expect(labels()).toEqual([
      'Change this cell',
      'New code cell',
      'Delete this cell',
      'Move this cell to the top'
    ]);
    const [change, added] = edits();
    expect(change.querySelector('del')!.textContent).toBe('a = 1');
    expect(change.querySelector('ins')!.textContent).toBe('a = 2');
    expect(change.querySelector('.cm-deletedText')!.textContent).toBe('1');
    expect(change.querySelector('.cm-changedText')!.textContent).toBe('2');
    expect(change.textContent).toContain('“analyst”: “To load the new file.”');
    expect(added.textContent).toContain('n = 1');
    expect(notebook.widgets).toHaveLength(3);
    const marked = notebook.widgets.map(
      ({ node }) => node.dataset.agentExecProposed
    );
    expect(marked).toEqual(['change', 'delete', 'move']);
    expect(header.node.textContent).toContain(
      '“analyst”\u2069 proposes 4 changes'
    );
  });

  it('says why an edit does not fit', async () => {
    const reason = 'The cell is gone.';
    await propose(proposedEdit({ id: 'a', kind: 'delete', reason }));
    expect(edits()[0].textContent).toContain(reason);
  });

  it('shows several new cells in their order', async () => {
    const added = (id: string, index: number, follows: string | null) =>
      proposedEdit({ id, kind: 'insert', after: code(id), index, follows });
    await propose(added('z', 1, null), added('y', 2, null), added('x', 4, 'a'));
    const texts = edits().map(
      node => node.querySelector('.cm-line')!.textContent
    );
    expect(texts).toEqual(['z', 'y', 'x']);
    const { node } = notebook.widgets[0];
    expect(node.querySelectorAll('.jp-AgentExecProposed')).toHaveLength(3);
  });

  it('folds what stays far from what changes, and the keyboard unfolds it', async () => {
    const lines = Array.from({ length: 30 }, (_, n) => `line_${n} = ${n}`);
    await propose(
      proposedEdit({
        id: 'a',
        kind: 'change',
        before: code(lines.join('\n')),
        after: code([...lines, 'new = 1'].join('\n'))
      })
    );
    const [edit] = edits();
    const folded = edit.querySelector<HTMLElement>('.cm-collapsedLines')!;
    expect(folded.textContent).toBe('26 unchanged lines');
    expect(folded.tabIndex).toBe(0);
    expect(edit.textContent).not.toContain('line_3 ');
    folded.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })
    );
    await settle();
    expect(edit.textContent).toContain('line_3 ');
  });

  it('shows what hides in lines that would go', async () => {
    await propose(
      proposedEdit({
        id: 'a',
        kind: 'change',
        before: code('a = "\u202eb"'),
        after: code('a = 1')
      })
    );
    expect(edits()[0].querySelector('del')!.textContent).toBe('a = "U+202Eb"');
  });

  it('keeps one, then all, and offers to undo what was kept', async () => {
    await propose(
      proposedEdit({ id: 'a', kind: 'delete' }),
      proposedEdit({ id: 'b', kind: 'delete', index: 1 }),
      proposedEdit({
        id: 'c',
        kind: 'delete',
        index: 2,
        fits: false,
        reason: 'The cell was edited since.'
      })
    );
    expect(edits()[2].textContent).toContain('The cell was edited since.');
    await click(edits()[0], 'Keep');
    expect(server.decided).toEqual([['keep', ['a']]]);
    server.emit(1, { action: 'proposals' });
    await settle(300);
    expect(edits()).toHaveLength(2);
    await click(header.node, 'Keep all');
    expect(server.decided[1]).toEqual(['keep', ['b', 'c']]);
    const status = header.node.querySelector('[role=status]')!;
    expect(status.textContent).toMatch(/^1 kept · 1 no longer fits/);
    await click(header.node, 'Undo');
    expect(server.decided[2]).toEqual(['undo', ['b']]);
  });

  it('says what became of kept edits that are undone by other means', async () => {
    await propose(proposedEdit({ id: 'a', kind: 'delete' }));
    await click(edits()[0], 'Keep');
    await settle(300);
    const become = async (status: IProposedEdit['status']) => {
      const edit = proposedEdit({ id: 'a', kind: 'delete', status });
      server.proposals = [proposal([edit])];
      server.emit(1, { action: 'proposals' });
      await settle(300);
    };
    const status = header.node.querySelector('[role=status]')!;
    const buttons = Array.from(header.node.querySelectorAll('button'));
    const undo = buttons.find(({ textContent }) => textContent === 'Undo')!;
    expect([status.textContent, undo.hidden]).toEqual(['1 kept', false]);
    await become('undone');
    expect([status.textContent, undo.hidden]).toEqual(['1 undone', true]);
    await become('kept');
    expect([status.textContent, undo.hidden]).toEqual(['1 kept', false]);
    await click(header.node, 'Dismiss');
    await become('undone');
    expect(header.widgets).toEqual([]);
  });

  it('keeps what a person has made of it, or says why it is rejected', async () => {
    await propose(
      proposedEdit({
        id: 'a',
        kind: 'change',
        before: code('a = 1'),
        current: code('a = 1'),
        after: code('a = 2'),
        result: code('a = 2')
      }),
      proposedEdit({ id: 'b', kind: 'delete', index: 1 })
    );
    const [changed, deleted] = edits();
    const text = (node: Element, label: string) =>
      Array.from(node.querySelectorAll('button')).find(
        each => each.textContent === label && !each.hidden
      );
    expect(text(deleted, 'Edit')).toBeUndefined();
    await click(changed, 'Edit');
    const editor = () =>
      EditorView.findFromDOM(changed.querySelector('.cm-editor')!)!;
    editor().dispatch({ changes: { from: 0, to: 5, insert: 'a = 3' } });
    expect(text(changed, 'Discard edits')).toBeDefined();
    await click(changed, 'Discard edits');
    expect(editor().state.doc.toString()).toBe('a = 2');
    await click(changed, 'Edit');
    editor().dispatch({ changes: { from: 0, to: 5, insert: 'a = 4' } });
    // What happens elsewhere leaves it as it is.
    server.emit(1, { action: 'proposals' });
    await settle(300);
    expect(editor().state.doc.toString()).toBe('a = 4');
    await click(header.node, 'Keep all');
    expect(server.decided).toEqual([]);
    expect(header.node.textContent).toContain('You have edited this change.');
    expect(document.activeElement).toBe(changed);
    await click(changed, 'Keep');
    const source_sha256 = sourceHash('a = 1');
    expect(server.decided).toEqual([
      ['keep', ['a'], { source: 'a = 4', source_sha256 }]
    ]);
    await click(deleted, 'Reject…');
    expect(server.decided).toHaveLength(1);
    answerDialog(' I need it ');
    await settle();
    expect(server.decided[1]).toEqual([
      'reject',
      ['b'],
      { reason: 'I need it' }
    ]);
  });

  it('leaves a part of a change out', async () => {
    /** Nine lines, of which some are changed. */
    const lines = (...changed: number[]) =>
      Array.from({ length: 9 }, (_, n) =>
        changed.includes(n) ? `x${n} = 2` : `x${n} = 1`
      ).join('\n');
    await propose(
      proposedEdit({
        id: 'a',
        kind: 'change',
        before: code(lines()),
        current: code(lines()),
        after: code(lines(0, 8)),
        result: code(lines(0, 8))
      })
    );
    const [edit] = edits();
    const part = edit.querySelector<HTMLElement>('.cm-chunkButtons button')!;
    expect(part.textContent).toBe('Leave this part out');
    part.dispatchEvent(new MouseEvent('mousedown', { bubbles: true }));
    part.click();
    await settle();
    await click(edit, 'Keep');
    expect(server.decided[0][2]?.source).toBe(lines(8));
  });

  it('proposes again all that was rejected, if that is undone', async () => {
    await propose(
      proposedEdit({ id: 'a', kind: 'delete' }),
      proposedEdit({ id: 'b', kind: 'delete', index: 1 })
    );
    await click(header.node, 'Reject all');
    const status = header.node.querySelector('[role=status]')!;
    expect(status.textContent).toBe('2 rejected');
    expect(edits()).toHaveLength(0);
    await click(header.node, 'Undo');
    expect(server.decided).toEqual([
      ['reject', ['a', 'b']],
      ['undo', ['a', 'b']]
    ]);
    expect(status.textContent).toBe('2 proposed again');
    expect(edits()).toHaveLength(2);
    const buttons = Array.from(header.node.querySelectorAll('button'));
    const undo = buttons.find(({ textContent }) => textContent === 'Undo')!;
    expect(undo.hidden).toBe(true);
  });

  it('tells what became of the last edit, and why it stays kept', async () => {
    const edit = proposedEdit({ id: 'a', kind: 'delete' });
    await propose(edit);
    const [proposal] = server.proposals;
    let answer: (told: IProposalList) => void = () => undefined;
    jest
      .spyOn(server, 'decideEdits')
      .mockImplementation(() => new Promise(resolve => (answer = resolve)));
    const answered = async (changes: Partial<IProposedEdit>) => {
      // The server tells the pages first: there is no open edit any more.
      server.proposals = [];
      server.emit(1, { action: 'proposals' });
      await settle(300);
      answer({
        proposals: [{ ...proposal, edits: [{ ...edit, ...changes }] }]
      });
      await settle();
    };
    await click(edits()[0], 'Keep');
    await answered({ status: 'kept' });
    expect(header.node.textContent).toContain('1 kept');
    await click(header.node, 'Undo');
    const reason = 'The cell was edited since.';
    await answered({ status: 'kept', fits: false, reason });
    const told = `1 cannot be undone: ${reason}`;
    expect(header.node.textContent).toContain(told);
    const buttons = Array.from(header.node.querySelectorAll('button'));
    const undo = buttons.find(({ textContent }) => textContent === 'Undo')!;
    expect(undo.hidden).toBe(true);
  });

  it('asks once for what was typed, and not for outputs', async () => {
    await propose(
      proposedEdit({
        id: 'a',
        kind: 'change',
        before: code('a = 1'),
        after: code('a = 2')
      }),
      proposedEdit({ id: 'b', kind: 'move', index: 1 })
    );
    const list = jest.spyOn(server, 'listProposals');
    const [change, move] = notebook.widgets.map(({ model }) => model);
    for (const typed of ['#', '# mi', '# mine']) {
      change.sharedModel.setSource(`${typed}\na = 1`);
      await jest.advanceTimersByTimeAsync(300);
    }
    expect(list).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(500);
    expect(list).toHaveBeenCalledTimes(1);
    // What is as the server knows it, or does not matter to it.
    change.sharedModel.setSource('a = 1');
    (change as ICodeCellModel).outputs.add({
      output_type: 'stream',
      name: 'stdout',
      text: 'printed'
    });
    move.sharedModel.setSource('b = 2');
    await jest.advanceTimersByTimeAsync(2000);
    expect(list).toHaveBeenCalledTimes(1);
  });

  it('leads from one to the next', async () => {
    jest.spyOn(notebook, 'scrollToItem').mockResolvedValue();
    await propose(
      proposedEdit({ id: 'a', kind: 'delete' }),
      proposedEdit({ id: 'b', kind: 'delete', index: 1 })
    );
    await click(header.node, 'Next');
    expect(document.activeElement).toBe(edits()[0]);
    await click(header.node, 'Next');
    expect(document.activeElement).toBe(edits()[1]);
    await click(header.node, 'Next');
    expect(document.activeElement).toBe(edits()[0]);
    await click(header.node, 'Previous');
    expect(document.activeElement).toBe(edits()[1]);
  });
});
