import { EditorView } from '@codemirror/view';
import {
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';
import { Panel, Widget } from '@lumino/widgets';
import { ApiError } from '../../api/errors';
import { LiveModel } from '../../live/live';
import type { IApproval, IChanges, IExecution, IPreview } from '../../tokens';
import type { ApprovalView } from '../../approvals/approval';
import { GUARD } from '../../approvals/approvalactions';
import { ApprovalSlot } from '../../approvals/approvalslot';
import { Clock } from '../../ui/clock';
import { untrusted } from '../../ui/untrusted';
import { answerDialog, shownDialog } from '../dialogs';
import { createEditors, Sight } from '../editors';
import {
  approval,
  execution,
  FakeServer,
  preview,
  session,
  settle
} from '../fakes';

const NOW = Date.parse('2026-01-02T03:04:05.000Z');

function asking(given: Partial<IExecution> = {}): IExecution {
  return execution({
    status: 'awaiting_approval',
    approval: approval({
      asked_at: '2026-01-02T03:04:00.000Z',
      expires_at: '2026-01-02T03:14:00.000Z',
      ...given.approval
    }),
    ...given
  });
}

/** A page on which something asks, and those who look at it. */
class Page {
  constructor(first: IExecution) {
    this.server.sessions = [session({ path: 'a.ipynb' })];
    this.model = new LiveModel(this.server, this.server.events);
    this.ask(first);
    const clock = new Clock(() => this.now);
    const trans = nullTranslator.load('jupyter_agent_exec');
    this._options = {
      clock,
      editors: createEditors(),
      live: this.model,
      rendermime: untrusted(
        new RenderMimeRegistry({ initialFactories: standardRendererFactories })
      ),
      specs: () => null,
      trans
    };
    this.cell.node.tabIndex = -1;
    this.slot = this.show(first.id);
    Widget.attach(this.cell, document.body);
  }

  /** Look at an execution, perhaps once more. */
  show(id: string): ApprovalSlot {
    const slot = new ApprovalSlot(id, this._options);
    this.cell.addWidget(slot);
    return slot;
  }

  ask(...executions: IExecution[]): void {
    this.server.executions = executions;
    this.server.approvals = { ...this.server.approvals, executions };
    void this.model.refresh();
  }

  /** What an execution has become, and that it asks no more. */
  async end(given: Partial<IExecution>): Promise<void> {
    this.ask();
    this.server.put(asking(given));
    await settle();
  }

  button(name: string): HTMLButtonElement {
    const buttons = this.cell.node.querySelectorAll('button');
    const found = Array.from(buttons).find(each => each.textContent === name);
    if (!found) {
      throw new Error(`No button ${name}: ${this.text}`);
    }
    return found;
  }

  find<E extends HTMLElement>(selector: string): E {
    return this.cell.node.querySelector(selector) as E;
  }

  press(node: HTMLElement, key: string, given: KeyboardEventInit = {}): void {
    const options = { key, bubbles: true, cancelable: true, ...given };
    node.dispatchEvent(new KeyboardEvent('keydown', options));
  }

  /** What a trial did. */
  get preview(): HTMLElement {
    return this.find('.jp-AgentExecPreview');
  }

  /** The editor with the source. */
  get editor(): EditorView {
    return EditorView.findFromDOM(this.find('.cm-editor'))!;
  }

  /** The lines of the source, as they are shown. */
  get lines(): string[] {
    const lines = this.cell.node.querySelectorAll('.cm-line');
    return Array.from(lines, each => each.textContent ?? '');
  }

  /** Type a text in the place of the source. */
  type(insert: string): void {
    const to = this.editor.state.doc.length;
    this.editor.dispatch({ changes: { from: 0, to, insert } });
  }

  get text(): string {
    return this.cell.node.textContent ?? '';
  }

  /** Decisions that reached the server. */
  get decisions(): string[] {
    return this.server.calls.filter(call => /^(approve|reject) /.test(call));
  }

  readonly cell = new Panel();
  readonly model: LiveModel;
  now = NOW;
  private readonly _options: ApprovalView.IOptions;
  readonly server = new FakeServer();
  readonly slot: ApprovalSlot;
}

async function open(given: Partial<IExecution> = {}): Promise<Page> {
  const page = new Page(asking(given));
  await settle(GUARD * 2);
  return page;
}

describe('ApprovalSlot', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => {
    document.body.replaceChildren();
    jest.useRealTimers();
  });

  it('tells who asks, where, until when, and exactly what', async () => {
    const page = await open({
      source: '<b>x</b>\u202e\n!ls',
      username: 'Ada',
      agent: { name: 'an\u202ealyst', version: '1', model: null }
    });
    const group = page.find('[role=group]');
    expect(group.getAttribute('aria-label')).toBe(
      'Agent “an\ufffdalyst 1” (Full access), on behalf of Ada, needs approval'
    );
    expect(page.text).toContain('expires in 10 minutes');
    expect(page.find('dl').textContent).toBe('Kernelpython3Notebooka.ipynb');
    expect(page.lines).toEqual(['<b>x</b>U+202E', '!ls']);
    expect(page.editor.state.readOnly).toBe(true);
    expect(page.text).toContain('1 character that is invisible');
  });

  it('takes no answer for a moment after it has appeared', async () => {
    const page = new Page(asking());
    await settle(GUARD - 1);
    page.button('Approve').click();
    expect(page.button('Approve').getAttribute('aria-disabled')).toBe('true');
    await settle(1);
    expect(page.decisions).toEqual([]);
    page.button('Approve').click();
    await settle();
    expect(page.decisions).toEqual(['approve x_1 sha-1']);
  });

  it('takes no answer for a moment after another has begun to ask', async () => {
    const page = await open();
    page.ask(asking(), asking({ seq: 2 }));
    await settle(0);
    page.button('Approve').click();
    await settle(GUARD);
    expect(page.decisions).toEqual([]);
    page.button('Approve').click();
    expect(page.decisions).toHaveLength(1);
  });

  it('shows another source, says so, and binds the answer to that', async () => {
    const page = await open();
    page.ask(asking({ source: 'x = 2', source_sha256: 'other' }));
    await settle(0);
    page.button('Approve').click();
    expect(page.decisions).toEqual([]);
    expect(page.find('[role=alert]').textContent).toMatch(
      /has changed since you looked/
    );
    expect(page.lines).toEqual(['x = 2']);
    await settle(GUARD);
    page.button('Approve').click();
    expect(page.decisions).toEqual(['approve x_1 other']);
  });

  it('says that it asks again for another kernel', async () => {
    const page = await open();
    const { approval } = asking();
    const again = { ...approval, asked_at: 'later', incarnation: 2 };
    const error = new ApiError('refused', 'x', 409, 'approval_changed');
    jest.spyOn(page.server, 'approve').mockRejectedValueOnce(error);
    page.server.approvals = {
      ...page.server.approvals,
      executions: [asking({ approval: again as IApproval })]
    };
    page.button('Approve').click();
    await settle();
    expect(page.find('[role=alert]').textContent).toMatch(/kernel has changed/);
    expect(page.find('dl').textContent).toContain('restarted 1 time');
  });

  it('is approved only after the end of all its code was in view', async () => {
    Sight.hides = true;
    const also = [{ execution_id: 'x_2', source: 'more()' }];
    const page = await open({
      approval: { ...asking().approval, also } as IApproval
    });
    Sight.hides = false;
    const approve = () => page.button('Approve').getAttribute('aria-disabled');
    expect(approve()).toBe('true');
    expect(page.text).toContain('To approve it, scroll to the end');
    page.button('Approve').click();
    page.button('Edit').click();
    await settle(GUARD);
    page.press(page.editor.contentDOM, 'Enter', { ctrlKey: true });
    expect(page.decisions).toEqual([]);
    const shown = jest.spyOn(Element.prototype, 'scrollIntoView');
    page.button('Show the end of the code').click();
    const { main } = page.editor.state.selection;
    expect(main.head).toBe(page.editor.state.doc.length);
    expect(page.editor.hasFocus).toBe(true);
    expect(shown).toHaveBeenCalledWith({ block: 'end' });
    Sight.show();
    await settle();
    expect(approve()).toBe('false');
    expect(page.text).not.toContain('To approve it');
    expect(page.button('Show the end of the code').hidden).toBe(true);
    page.button('Approve').click();
    expect(page.decisions).toHaveLength(1);
  });

  it('begins with the first line that is not blank, and counts the others', async () => {
    const blank = ' \t\n'.repeat(400);
    const approval = { ...asking().approval, before: blank } as IApproval;
    const source = `${blank}x = 2\n${blank}evil()`;
    const page = await open({ source, approval });
    expect(page.lines).toEqual(['x = 2', 'evil()']);
    expect(page.text).toContain('802 lines, 800 of them blank');
    expect(page.text).toContain('400 blank lines');
    expect(page.find('del')).toBeNull();
    page.button('Edit').click();
    expect(page.text).not.toContain('400 blank lines');
  });

  it('shows what a trial did, with nothing in it that runs', async () => {
    const page = new Page(asking());
    page.server.preview = preview({ status: 'pending' });
    await settle(GUARD);
    expect(page.preview.textContent).toMatch(/^Trial: waits, or runs/);
    page.server.preview = preview({
      status: 'error',
      reason: 'It ended.',
      outputs: [
        { output_type: 'stream', name: 'stdout', text: 'hi' },
        {
          output_type: 'display_data',
          metadata: {},
          data: { 'text/html': '<i>as</i><img src="x" onerror="run()">' }
        },
        {
          output_type: 'display_data',
          metadata: {},
          data: { 'application/javascript': 'run()' }
        }
      ] as object[] as IPreview['outputs'],
      error: { ename: 'PermissionError' },
      changes: {
        variables: [
          {
            name: 'd\u202ef',
            change: 'added',
            type: 'int',
            shape: null,
            length: null,
            preview: null
          }
        ],
        more_variables: 0,
        files: null
      } as unknown as IChanges,
      seal: {
        refused: [{ kind: 'write', what: 'out\u202e.csv', line: null }]
      }
    });
    page.server.emit(1, { action: 'approvals' });
    await settle(0);
    page.button('Approve').click();
    expect(page.decisions).toEqual([]); // the answers have just moved
    const { textContent } = page.preview;
    expect(textContent).toContain('Nothing has changed yet.');
    expect(textContent).toContain(
      'It writes or removes a file: “out\ufffd.csv”'
    );
    expect(textContent).toContain('It would change: d\ufffdf');
    // What the code has a say in stands in a frame, and all else outside.
    const frame = page.find('.jp-AgentExecPreview-frame');
    expect(frame.textContent).toMatch(/^PermissionErrorIt ended\.hi/);
    frame.remove();
    expect(page.preview.textContent).not.toMatch(/Permission|It ended|hi\b/);
    expect(page.preview.textContent).toContain('It failed.');
    expect(frame.querySelector('i')?.textContent).toBe('as');
    expect(frame.querySelector('[onerror], script')).toBeNull();
    await settle(GUARD);
    page.button('Approve').click();
    expect(page.decisions).toHaveLength(1);
  });

  it('leads from what the trial showed to the lines of the code', async () => {
    const source = 'y = 1\nx = y\nopen("a", "w")\nx = 2\n';
    const page = new Page(asking({ source }));
    const variable = { change: 'added', type: 'int', shape: null };
    page.server.preview = preview({
      changes: {
        variables: [
          { ...variable, name: 'x', length: null, preview: null },
          { ...variable, name: 'hidden', length: null, preview: null }
        ],
        more_variables: 0,
        not_compared: 0
      } as unknown as IChanges,
      seal: {
        refused: [
          { kind: 'write', what: 'a', line: 3 },
          { kind: 'write', what: 'b', line: null },
          { kind: 'write', what: 'lie', line: -1 }
        ]
      }
    });
    await settle(GUARD * 2);
    const chips = Array.from(
      page.preview.querySelectorAll<HTMLElement>('.jp-AgentExecPreview-chip')
    );
    expect(page.preview.textContent).toContain('“lie”');
    expect(chips.map(each => each.textContent)).toEqual([
      'It writes or removes a file: “a” Line 3',
      'x Lines 2, 4'
    ]);
    const marked = () =>
      Array.from(
        page.cell.node.querySelectorAll('.jp-AgentExecSource-highlight'),
        each => each.textContent
      );
    chips[1].focus();
    expect(marked()).toEqual(['x = y', 'x = 2']);
    chips[0].dispatchEvent(new MouseEvent('mouseenter'));
    expect(marked()).toEqual(['open("a", "w")']);
    chips[0].dispatchEvent(new MouseEvent('mouseleave'));
    expect(marked()).toEqual([]);
    chips[0].click();
    expect(marked()).toEqual(['open("a", "w")']);
    page.button('Edit').click();
    page.type('b');
    expect(marked()).toEqual([]);
  });

  it('shows no trial of code that the user has edited since', async () => {
    const page = new Page(asking({ source: 'a' }));
    page.server.preview = preview({
      outputs: [
        { output_type: 'stream', name: 'stdout', text: 'as tried' }
      ] as object[] as IPreview['outputs']
    });
    await settle(GUARD * 2);
    expect(page.preview.textContent).toContain('as tried');
    page.button('Edit').click();
    expect(page.preview.textContent).toContain('as tried');
    page.type('b');
    const { textContent } = page.preview;
    expect(textContent).toBe('No trial of this code.');
    expect(page.button('Approve').getAttribute('aria-disabled')).toBe('true');
    page.type('a');
    expect(page.preview.textContent).toContain('as tried');
    page.type('b');
    page.slot.dispose();
    page.show('x_1');
    await settle(GUARD);
    expect(page.preview.textContent).toMatch(/^No trial of this code/);
  });

  it('shows another trial when the kernel is another', async () => {
    const page = await open();
    page.server.preview = preview({ reason: 'of another kernel' });
    const { approval } = asking();
    const again = { ...approval, asked_at: 'later', incarnation: 2 };
    page.ask(asking({ approval: again as IApproval }));
    await settle();
    expect(page.preview.textContent).toContain('of another kernel');
  });

  it('says that it edits a cell, and is approved by itself alone', async () => {
    const before = 'theirs';
    const approval = { ...asking().approval, before, edits_cell: true };
    const page = await open({ approval: approval as IApproval });
    expect(page.text).toContain('replaces this cell and runs it');
    const again = { ...approval, asked_at: 'later', before: 'theirs again' };
    page.ask(asking({ approval: again as IApproval }));
    await settle();
    expect(page.find('[role=alert]').textContent).toMatch(/Check it again/);
  });

  it('approves what a person has edited', async () => {
    const page = await open({ source: 'a\r\nb' });
    page.button('Edit').click();
    expect(page.editor.state.readOnly).toBe(false);
    expect(page.editor.hasFocus).toBe(true);
    page.type('a\nc\u200b');
    expect(page.lines).toEqual(['a', 'cU+200B']);
    expect(page.text).toContain('1 character that is invisible');
    await settle(GUARD);
    page.press(page.editor.contentDOM, 'Enter', { ctrlKey: true });
    expect(page.decisions).toEqual(['approve x_1 sha-1 as a\nc\u200b']);
  });

  it('runs what is shown, also if that is out of sight for a while', async () => {
    const page = await open({ source: 'a' });
    page.button('Edit').click();
    page.type('b');
    page.slot.dispose();
    page.show('x_1');
    await settle(GUARD);
    expect(page.lines).toEqual(['b']);
    page.button('Approve').click();
    expect(page.decisions).toEqual(['approve x_1 sha-1 as b']);
    await settle();
    page.ask(asking({ source: 'c', source_sha256: 'other' }));
    await settle(5000);
    expect(page.lines).toEqual(['c']);
    expect(page.editor.state.readOnly).toBe(true);
  });

  it('approves as asked what is as it was', async () => {
    const page = await open({ source: 'a\r\nb\rc' });
    expect(page.lines).toEqual(['a', 'bU+000D', 'c']);
    page.button('Edit').click();
    page.type('other');
    await settle(GUARD);
    page.button('Discard edits').click();
    expect(page.lines).toEqual(['a', 'bU+000D', 'c']);
    expect(page.button('Edit')).toBe(document.activeElement);
    await settle(GUARD);
    page.button('Approve').click();
    expect(page.decisions).toEqual(['approve x_1 sha-1']);
  });

  it('leads from the editor to the answers, and past it', async () => {
    const page = await open({ source: 'a' });
    const tab = jest.fn();
    page.editor.contentDOM.addEventListener('keydown', tab);
    page.press(page.editor.contentDOM, 'Tab');
    expect(tab).not.toHaveBeenCalled();
    page.button('Edit').click();
    page.press(page.editor.contentDOM, 'Tab');
    expect(tab).toHaveBeenCalled();
    page.press(page.editor.contentDOM, 'Escape');
    expect(document.activeElement).toBe(page.button('Approve'));
  });

  it('tells how many more wait for the decision', async () => {
    const page = await open();
    expect(page.text).not.toContain('wait for this decision');
    page.server.sessions = [session({ behind: 2 })];
    page.ask(asking());
    await settle();
    expect(page.text).toContain('2 more wait for this decision');
  });

  it('rejects with a reason, and without', async () => {
    const page = await open();
    page.button('Reject…').click();
    await settle();
    expect(document.activeElement).toBe(shownDialog().querySelector('input'));
    answerDialog(null);
    await settle();
    expect(page.decisions).toEqual([]);
    page.button('Reject…').click();
    await settle();
    answerDialog('  Not on production ');
    await settle();
    expect(page.decisions).toEqual(['reject x_1: Not on production']);
    const other = await open();
    other.button('Reject…').click();
    await settle();
    answerDialog('');
    await settle();
    expect(other.decisions).toEqual(['reject x_1: null']);
  });

  it('decides about nothing that has changed while a question was open', async () => {
    const page = await open();
    page.button('Reject…').click();
    await settle();
    page.ask(asking({ source: 'c', source_sha256: 'other' }));
    await settle();
    answerDialog('Not this');
    await settle();
    expect(page.decisions).toEqual([]);
    expect(page.text).toContain('Check it again.');
  });

  it('approves, and lets the agent run more for a time', async () => {
    const page = await open();
    page.server.sessions = [session({ approval: 'always' })];
    page.ask(asking());
    await settle(GUARD);
    expect(page.text).not.toContain('If approved');
    page.button('Approve and let it run…').click();
    await settle();
    expect(shownDialog().textContent).toContain(
      'let “analyst” run code in this kernel without asking'
    );
    const buttons = shownDialog().querySelectorAll('button');
    Array.from(buttons)
      .find(each => each.textContent === 'For an hour')!
      .click();
    await settle();
    expect(page.decisions).toEqual(['approve x_1 sha-1 until hour']);
  });

  it('says what an approval covers where it covers all, and offers less', async () => {
    const page = await open();
    page.server.sessions = [session({ approval: 'first' })];
    page.ask(asking());
    await settle(GUARD);
    expect(page.text).toContain('without asking, until the kernel restarts');
    expect(page.button('Approve').title).toContain('until the kernel restarts');
    expect(() => page.button('Approve and let it run…')).toThrow();
    page.button('Only this once').click();
    expect(page.decisions).toEqual(['approve x_1 sha-1 until once']);
  });

  it('does not say that an approval of an edit covers more', async () => {
    const approval = { ...asking().approval, edits_cell: true } as IApproval;
    const page = await open({ approval });
    page.server.sessions = [session({ approval: 'first' })];
    page.ask(asking({ approval }));
    await settle(GUARD);
    expect(page.text).not.toContain('If approved');
    expect(page.button('Approve').title).toBe('');
    expect(page.button('Approve and let it run…')).toBeTruthy();
  });

  it('leads back to the cell with Escape', async () => {
    const page = await open();
    page.button('Approve').focus();
    page.press(page.button('Approve'), 'Escape');
    expect(document.activeElement).toBe(page.cell.node);
  });

  it('says what was decided elsewhere, keeps the focus, and goes', async () => {
    const page = await open();
    page.button('Approve').focus();
    const { approval } = asking();
    await page.end({
      status: 'rejected',
      started_at: null,
      approval: {
        ...approval,
        status: 'rejected',
        decided_by: 'Ada'
      } as IApproval
    });
    expect(page.find('[role=status]').textContent).toBe('Rejected by Ada');
    expect(document.activeElement).toBe(page.cell.node);
    await settle(5000);
    expect(page.slot.isEmpty).toBe(true);
    expect(page.slot.isHidden).toBe(true);
  });

  it('says so also if the outcome cannot be read', async () => {
    const page = await open();
    page.ask();
    await settle();
    expect(page.find('[role=status]').textContent).toBe('Already decided');
  });

  it('says in its place what went wrong, and can be tried again', async () => {
    const page = await open();
    page.server.failure = new ApiError('unreachable', 'away');
    page.button('Approve').click();
    expect(page.button('Approve').getAttribute('aria-disabled')).toBe('true');
    await settle(0);
    expect(page.find('[role=alert]').textContent).toMatch(/cannot be reached/);
    await settle(GUARD);
    expect(page.button('Approve').getAttribute('aria-disabled')).toBe('false');
    page.server.failure = null;
    page.button('Approve').click();
    await settle(0);
    expect(page.decisions).toHaveLength(2);
  });

  it('shows what changed', async () => {
    const approval = { ...asking().approval, before: 'a\nb\nd' } as IApproval;
    const page = await open({ source: 'a\nc', approval });
    expect(page.lines).toEqual(['a', 'c']);
    page.button('Show what differs').click();
    expect(page.lines).toEqual(['a', 'c']);
    const gone = page.cell.node.querySelectorAll('del');
    expect(Array.from(gone, each => each.textContent)).toEqual(['b', 'd']);
    expect(page.find('ins').textContent).toBe('c');
    page.button('Edit').click();
    page.type('a\nb\nd');
    expect(page.find('ins, del')).toBeNull();
  });

  it('looks again when it has expired and no event told so', async () => {
    const page = await open();
    page.server.forget();
    page.now = NOW + 11 * 60_000;
    await settle(3000);
    expect(page.server.calls).toContain('approvals');
    expect(page.text).toContain('expires now');
  });

  it('stays until what was approved has its turn', async () => {
    const page = await open();
    const { approval } = asking();
    const approved = { ...approval, status: 'approved' } as IApproval;
    const who = 'person' as const;
    const waiting_for = { who, agent: null };
    const waits = { approval: approved, started_at: null, waiting_for };
    await page.end({ status: 'queued', ...waits, waiting_for: null });
    await settle(10_000);
    expect(page.find('[role=status]').textContent).toBe('Approved by the user');
    page.server.put(asking({ status: 'queued', ...waits }));
    page.server.emit(1, { execution_id: 'x_1', status: 'queued' });
    await settle(10_000);
    expect(page.find('[role=status]').textContent).toMatch(
      /^Approved by the user · /
    );
    expect(page.text).not.toMatch(/expires|needs approval/);
    expect(page.find('.cm-editor, button')).toBeNull();
    page.server.put(asking({ status: 'running', approval: approved }));
    page.server.emit(2, { execution_id: 'x_1', status: 'running' });
    await settle();
    expect(page.slot.isEmpty).toBe(true);
  });

  it('shows one that asks again after it was decided', async () => {
    const page = await open();
    await page.end({ status: 'queued' });
    page.ask(asking());
    await settle(5000);
    expect(page.button('Approve')).toBeTruthy();
    page.cell.dispose();
    expect(page.slot.isDisposed).toBe(true);
  });
});
