/**
 * What an agent runs and what a person runs look the same in their notebooks:
 * the same code in two notebooks, cell by cell.
 */
import { expect } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';
import { codeCell, OpenNotebook } from './notebook';
import {
  closeNotebook,
  modelOutputs,
  outputs,
  runAsPerson,
  shown,
  test
} from './trust';

/** Code of which each cell may change what those before it show. */
const SOURCES = [
  // Displays that are updated.
  'from IPython.display import HTML, clear_output, display\n' +
    'print("before")\nh = display("one", display_id=True)\nprint("after")',
  'h.update("two")',
  'display("again", display_id=h.display_id)\nprint("and more")',
  'h.update(HTML("<b>three</b>"))\nprint("updated")',
  'display("kept", display_id="kept"); display("shown", display_id="k2")\n' +
    'clear_output()\nprint("cleared")',
  'display("four", display_id="kept")',
  '{"a": 1}',
  // Progress, and what is written over.
  'import sys, time\nfrom IPython.display import clear_output, display\n' +
    'for n in range(4):\n    clear_output(wait=True)\n' +
    '    print("step", n); display(n); time.sleep(0.15)\n',
  'for n in range(4):\n' +
    `    print(f"\\r{n * 30:3d}%|{n * '#'}", end="", file=sys.stderr, flush=True)\n` +
    '    time.sleep(0.15)\nprint(file=sys.stderr)',
  'for n in range(6):\n    print(f"\\rat {10 ** (3 - n // 2)}", end="", flush=True)\n' +
    '    time.sleep(0.06)',
  'print("one\\rtwo\\nthree\\b\\b!\\n\\x1b[31mred\\x1b[0m")\n' +
    'for n in range(3):\n    print(n); print(-n, file=sys.stderr)\n' +
    'sys.stdout.flush(); display(1); print("x", end=""); print("y")',
  'print("gone"); clear_output(wait=True); time.sleep(0.3)',
  'print("gone"); clear_output(); time.sleep(0.3); print("stays")',
  'print("left")\n1 / 0',
  // A thread that goes on when its cell has ended.
  'import threading, time\nfrom IPython.display import display\n' +
    'go_on = threading.Event()\n' +
    'def work():\n    go_on.wait()\n    for n in range(3):\n' +
    '        time.sleep(0.3); print("late", n, flush=True)\n' +
    '    display("late and shown"); h.update("late update")\n' +
    'h = display("early", display_id=True)\n' +
    'thread = threading.Thread(target=work); thread.start()\nprint("early")',
  'go_on.set(); thread.join(); print("joined")'
];

/** Outputs without what differs each time. */
async function told(notebook: OpenNotebook, from: number): Promise<object[][]> {
  const all = JSON.stringify((await modelOutputs(notebook)).slice(from));
  return JSON.parse(all.replace(/ipykernel_\d+\/\d+/g, 'kernel'));
}

/** The texts that are shown of some cells, also out of sight. */
async function texts(page: Page, from: number, count: number) {
  const all: string[][] = [];
  for (let index = from; index < from + count; index++) {
    all.push(await outputs(page, index).allTextContents());
  }
  return all;
}

test('what an agent runs is in the notebook as what a person runs', async ({
  desk,
  page
}) => {
  const cells = SOURCES.map((source, n) => codeCell(`c${n}`, source));
  let notebook = await desk.open(cells, 'mine.ipynb');
  for (const index of cells.keys()) {
    await runAsPerson(notebook, index);
  }
  await expect(shown(page, cells.length - 2)).toContainText('late update');
  await expect(
    outputs(page, cells.length - 1).filter({ hasText: 'joined' })
  ).toBeVisible();
  const expected = await told(notebook, 0);
  const seen = await texts(page, 0, cells.length);
  expect(new Set(seen.flat()).size).toBeGreaterThan(15);
  await closeNotebook(notebook);
  notebook = await desk.open([codeCell('first', '')]);
  const agent = await desk.attach();
  for (const source of SOURCES) {
    await desk.run(agent, source);
  }
  await expect.poll(() => told(notebook, 1)).toEqual(expected);
  await expect.poll(() => texts(page, 1, cells.length)).toEqual(seen);
  await notebook.save();
  notebook = await desk.reopen();
  await expect.poll(() => told(notebook, 1)).toEqual(expected);
  await expect.poll(() => texts(page, 1, cells.length)).toEqual(seen);
});

test('an agent updates a display of a person’s as their own next cell would', async ({
  desk,
  page
}) => {
  const notebook = await desk.open([
    codeCell('mine', 'h = display("mine", display_id=True)')
  ]);
  await runAsPerson(notebook, 0);
  const agent = await desk.attach();
  await desk.run(agent, 'h.update("updated")');
  await expect(outputs(page, 0)).toHaveText("'updated'");
  expect(await modelOutputs(notebook)).toMatchObject([
    [{ data: { 'text/plain': "'updated'" } }],
    []
  ]);
});
