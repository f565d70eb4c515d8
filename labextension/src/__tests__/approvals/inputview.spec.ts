import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { ApiError } from '../../api/errors';
import { ExecutionModel } from '../../live/execution';
import type { IInput } from '../../tokens';
import { InputView } from '../../approvals/inputview';
import { execution, FakeServer } from '../fakes';

const trans = nullTranslator.load('');

function input(given: Partial<IInput> = {}): IInput {
  return { prompt: 'Name? ', password: false, asked_at: 'a', ...given };
}

/** A field of an execution that asks, in a cell. */
function show(asked: IInput | null) {
  const api = new FakeServer();
  const status = asked ? 'awaiting_input' : 'running';
  const model = new ExecutionModel(execution({ status, input: asked }));
  api.put(model.execution);
  const view = new InputView({ api, model, trans });
  const cell = document.createElement('div');
  cell.tabIndex = -1;
  document.body.replaceChildren(cell);
  Widget.attach(view, cell);
  const ask = (next: IInput | null) =>
    model.setStatus({ ...model.execution, input: next });
  return { api, ask, cell, model, view };
}

function field(view: InputView): HTMLInputElement {
  const found = view.node.querySelector('input');
  if (!found) {
    throw new Error('there is no field');
  }
  return found;
}

async function send(view: InputView, value: string): Promise<void> {
  field(view).value = value;
  view.node.querySelector('form')?.requestSubmit();
  await new Promise(resolve => setTimeout(resolve));
}

describe('InputView', () => {
  it('is hidden while nothing is asked', () => {
    const { ask, view } = show(null);
    expect(view.isHidden).toBe(true);
    ask(input());
    expect(view.isHidden).toBe(false);
    ask(null);
    expect(view.isHidden).toBe(true);
    expect(view.node.querySelector('input')).toBeNull();
  });

  it('sends what is typed as the answer to what is shown', async () => {
    const { api, view } = show(input());
    expect(view.node.querySelector('label')?.textContent).toBe('Name?');
    await send(view, 'Ada');
    expect(api.calls).toEqual(['input x_1 a: Ada']);
  });

  it('shows what the code says as text', () => {
    const { view } = show(input({ prompt: '<b>x</b>\n\u202edrow' }));
    expect(view.node.querySelector('b')).toBeNull();
    expect(view.node.querySelector('label')?.textContent).toBe(
      '<b>x</b>\n\ufffddrow'
    );
  });

  it('hides a password and says what is recorded', () => {
    const { ask, view } = show(input({ password: true }));
    expect(field(view).type).toBe('password');
    expect(view.node.textContent).toContain('not recorded');
    ask(input({ asked_at: 'b' }));
    expect(field(view).type).toBe('text');
    expect(view.node.textContent).toContain('Your answer is recorded');
  });

  it('keeps what is typed until something else is asked', () => {
    const { ask, view } = show(input());
    field(view).value = 'half';
    ask(input());
    expect(field(view).value).toBe('half');
    ask(input({ asked_at: 'b', prompt: 'Next? ' }));
    expect(field(view).value).toBe('');
  });

  it('leads the keyboard to the next field, and then to the cell', () => {
    const { ask, cell, view } = show(input());
    field(view).focus();
    ask(input({ asked_at: 'b' }));
    expect(document.activeElement).toBe(field(view));
    ask(null);
    expect(document.activeElement).toBe(cell);
  });

  it('leads the keyboard back to a question after a while, unless it went on', () => {
    const { ask, cell, view } = show(input());
    field(view).focus();
    ask(null);
    expect(document.activeElement).toBe(cell);
    ask(input({ asked_at: 'b' }));
    expect(document.activeElement).toBe(field(view));
    ask(null);
    (document.activeElement as HTMLElement).blur();
    ask(input({ asked_at: 'c' }));
    expect(document.activeElement).toBe(document.body);
  });

  it('says that somebody else was quicker, and lets one try again', async () => {
    const { api, view } = show(input());
    api.failure = new ApiError('refused', 'late', 409, 'input_not_asked');
    await send(view, 'Ada');
    const notice = view.node.querySelector('[role=alert]');
    expect(notice?.textContent).toContain('already answered');
    expect(field(view).readOnly).toBe(false);
    api.failure = null;
    await send(view, 'Bo');
    expect(api.calls[api.calls.length - 1]).toBe('input x_1 a: Bo');
    expect(notice?.textContent).toBe('');
  });
});
