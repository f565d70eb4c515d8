/** The line in which a person types stays where it is, whatever comes above it. */
import { expect, galata } from '@jupyterlab/galata';
import { mergeTests } from '@playwright/test';
import type { Page } from '@playwright/test';
import { Question, test as approvalTest } from './approval';
import { codeCell } from './notebook';
import { ProposingAgent, ShownProposals } from './proposing';
import { test as trustTest } from './trust';

const test = mergeTests(approvalTest, trustTest);

const CELLS = Array.from({ length: 40 }, (_, n) =>
  codeCell(`c${n}`, `a = ${n}\nb = ${n}\nc = ${n}`)
);

/** Begin to note where the line with the keyboard is in each frame that is drawn. */
function watchLine(page: Page): Promise<void> {
  return page.evaluate(() => {
    const editor = document.activeElement!;
    const tops: number[] = [];
    Object.assign(window, { tops });
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      tops.push(editor.getBoundingClientRect().top);
      requestAnimationFrame(() => port2.postMessage(null)); // once it is drawn
    };
    port2.postMessage(null);
  });
}

/** How far the line has moved at most, in pixels. */
function moved(page: Page): Promise<number> {
  return page.evaluate(() => {
    const { tops } = window as unknown as { tops: number[] };
    return Math.max(...tops) - Math.min(...tops);
  });
}

// In the mode `full`, JupyterLab draws cells first, and then learns their heights.
for (const windowingMode of ['contentVisibility', 'defer', 'none']) {
  test.describe(`in windowing mode ${windowingMode}`, () => {
    test.use({
      mockSettings: {
        ...galata.DEFAULT_SETTINGS,
        '@jupyterlab/notebook-extension:tracker': { windowingMode }
      }
    });

    for (const [place, index] of [
      ['top', 1],
      ['middle', 20],
      ['end', 39]
    ] as const) {
      test(`nothing moves the line in which a person types at the ${place}`, async ({
        page,
        desk,
        newAsking,
        request,
        baseURL
      }) => {
        const notebook = await desk.open(CELLS);
        await notebook.activate(index);
        const cell = page.locator(
          `.jp-Notebook [data-windowed-list-index="${index}"]`
        );
        await cell.locator('.cm-content').click();
        await page.keyboard.press('Control+End');
        await page.keyboard.type('0');
        const agent = await ProposingAgent.open(request, baseURL!, desk.path);
        await watchLine(page);
        const above = CELLS[index - 1].id;
        const typing = page.keyboard.type('0123456789'.repeat(10), {
          delay: 60
        });
        await agent.propose(
          {
            op: 'insert',
            cell_type: 'code',
            source: 'new = 1\n'.repeat(5),
            after: above
          },
          { op: 'replace', cell_id: above, source: 'x = 1\ny = 1\nz = 1' },
          {
            op: 'replace',
            cell_id: CELLS[index].id,
            source: `# theirs\na = ${index}\nb = ${index}\nc = ${index}`
          }
        );
        const shown = new ShownProposals(page);
        await expect(shown.edits).toHaveCount(3);
        const asked = 'print("asked")\n'.repeat(4);
        await newAsking('asks', desk.path).then(each =>
          each.ask(asked, { placement: { before: above } })
        );
        const question = Question.in(page.locator('.jp-Notebook'));
        await expect(question.button('Approve')).toBeVisible();
        await typing;
        await question.button('Reject…').waitFor();
        expect(await moved(page)).toBeLessThan(2);
        await shown.all('Reject all');
        await agent.close();
      });
    }
  });
}
