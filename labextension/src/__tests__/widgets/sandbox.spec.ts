import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { ExecutionModel } from '../../model/execution';
import { sandboxPart } from '../../widgets/sandbox';
import { execution, FakeServer, settle } from '../fakes';

const trans = nullTranslator.load('');

function html(text?: string) {
  return {
    output_type: 'display_data',
    data: text === undefined ? {} : { 'text/html': text },
    metadata: {}
  };
}

const LEFT_OUT = [{ index: 0, bytes: 9000, mimetypes: ['text/html'] }];

describe('sandboxPart', () => {
  const errors: unknown[] = [];
  const api = new FakeServer();
  let model: ExecutionModel;
  let part: Widget;

  function show(...given: Parameters<typeof execution>) {
    model = new ExecutionModel(execution(...given));
    part = sandboxPart({ api, trans, onError: error => errors.push(error) })(
      model
    );
    Widget.attach(part, document.body);
  }

  function button(): HTMLButtonElement {
    return part.node.querySelector('button')!;
  }

  function frame(): HTMLIFrameElement | null {
    return part.node.querySelector('iframe');
  }

  async function open(): Promise<void> {
    button().focus();
    button().click();
    await settle();
  }

  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
    part.dispose();
    errors.length = 0;
  });

  it('is not there without active outputs', () => {
    show({ cell: { outputs: [html('<b>plain</b>')] } });
    expect(part.isHidden).toBe(true);
  });

  it('opens on a click, leads the keyboard in, and back when it is closed', async () => {
    show({ cell: { outputs: [html('<style></style>drawn')] } });
    const opener = button();
    expect(frame()).toBeNull();
    await open();
    expect(frame()?.getAttribute('sandbox')).toBe('');
    expect(frame()?.srcdoc).toContain('drawn');
    expect(document.activeElement).toBe(button());
    button().dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Escape', bubbles: true })
    );
    expect(frame()).toBeNull();
    expect(document.activeElement).toBe(opener);
  });

  it('fetches what was left out, and stays when it is shown elsewhere', async () => {
    const given = execution({
      left_out: LEFT_OUT,
      cell: { outputs: [html()] }
    });
    show(given);
    const whole = { outputs: [html('<style></style>fetched')] };
    api.put({ ...given, left_out: [], cell: whole });
    await open();
    expect(frame()?.srcdoc).toContain('fetched');
    const opened = frame();
    await model.openOutput(0, api);
    expect(frame()).toBe(opened);
    expect(errors).toEqual([]);
  });

  it('says so when what was left out cannot be fetched', async () => {
    show({ id: 'gone', left_out: LEFT_OUT, cell: { outputs: [html()] } });
    await open();
    expect(errors).toHaveLength(1);
    expect(document.activeElement).toBe(button());
  });

  it('keeps what is open while others come, and closes what has changed', async () => {
    const first = html('<style></style>first');
    show({ cell: { outputs: [first] } });
    await open();
    const opened = frame();
    model.applyOutput({ index: 1, output: html('<style></style>second') });
    expect(frame()).toBe(opened);
    expect(part.node.children).toHaveLength(2);
    model.applyOutput({ index: 0, output: html('<style></style>changed') });
    expect(frame()).toBeNull();
    expect(part.node.contains(document.activeElement)).toBe(true);
  });
});
