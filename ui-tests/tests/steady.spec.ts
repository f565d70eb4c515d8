/** The line in which a person types stays where it is, whatever comes above it. */
import { expect, galata } from '@jupyterlab/galata';
import { mergeTests } from '@playwright/test';
import type { Locator, Page } from '@playwright/test';
import { Question, test as approvalTest } from './approval';
import { codeCell } from './notebook';
import { ProposingAgent, ShownProposals } from './proposing';
import { test as trustTest } from './trust';

const test = mergeTests(approvalTest, trustTest);

const CELLS = Array.from({ length: 40 }, (_, n) =>
  codeCell(`c${n}`, `a = ${n}\nb = ${n}\nc = ${n}`)
);

/**
 * Begin to note where the line with the keyboard is in each frame that is drawn.
 *
 * Observers of sizes are called last before that, when all has its place.
 */
function watchLine(page: Page): Promise<void> {
  return page.evaluate(() => {
    const editor = document.activeElement!;
    const tops: number[] = [];
    Object.assign(window, { tops });
    const probe = document.createElement('div');
    probe.style.cssText = 'position: fixed; width: 1px';
    document.body.append(probe);
    new ResizeObserver(() => {
      tops.push(editor.getBoundingClientRect().top);
      requestAnimationFrame(() => {
        probe.style.width = probe.style.width === '1px' ? '2px' : '1px';
      });
    }).observe(probe);
  });
}

/** How far the line has moved at most, in pixels. */
function moved(page: Page): Promise<number> {
  return page.evaluate(() => {
    const { tops } = window as unknown as { tops: number[] };
    return Math.max(...tops) - Math.min(...tops);
  });
}

/** Scroll as a person does, until a cell is in the middle, or as near as it goes. */
async function scrollTo(page: Page, cell: Locator): Promise<void> {
  await page.locator('.jp-NotebookPanel .jp-WindowedPanel-outer').hover();
  const goOn = async () => {
    const by = await cell.evaluate(node => {
      const outer = node.closest('.jp-WindowedPanel-outer')!;
      const middleOf = (each: Element) => {
        const { height, top } = each.getBoundingClientRect();
        return top + height / 2;
      };
      const { clientHeight, scrollHeight, scrollTop } = outer;
      const wanted = scrollTop + middleOf(node) - middleOf(outer);
      const most = scrollHeight - clientHeight;
      return Math.min(Math.max(wanted, 0), most) - scrollTop;
    });
    await page.mouse.wheel(0, by);
    return Math.abs(by);
  };
  await expect.poll(goOn).toBeLessThan(1);
}

/** Type until it is told to stop, and the last of it is typed. */
function keepTyping(page: Page): () => Promise<void> {
  let isOver = false;
  const typing = (async () => {
    while (!isOver) {
      await page.keyboard.type('0123456789', { delay: 60 });
    }
  })();
  return () => {
    isOver = true;
    return typing;
  };
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

    test('nothing moves the line in which a person types at the top, in the middle, or at the end', async ({
      page,
      desk,
      newAsking,
      request,
      baseURL
    }) => {
      await desk.open(CELLS);
      const agent = await ProposingAgent.open(request, baseURL!, desk.path);
      const asking = await newAsking('asks', desk.path);
      const shown = new ShownProposals(page);
      const question = Question.in(page.locator('.jp-Notebook'));
      for (const index of [1, 20, 39]) {
        const cell = page.locator(
          `.jp-Notebook [data-windowed-list-index="${index}"]`
        );
        await scrollTo(page, cell);
        await cell.locator('.cm-content').click();
        await page.keyboard.press('Control+End');
        await page.keyboard.type('0');
        await watchLine(page);
        const stop = keepTyping(page);
        const above = CELLS[index - 1].id;
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
        await expect(shown.edits).toHaveCount(3);
        const source = 'print("asked")\n'.repeat(4);
        const asked = await asking.ask(source, {
          placement: { before: above }
        });
        await expect(question.button('Approve')).toBeVisible();
        await stop();
        await question.button('Reject…').waitFor();
        expect(await moved(page)).toBeLessThan(2);
        await asking.cancel(asked);
        await expect(question.node).toHaveCount(0);
        await shown.all('Reject all');
      }
      await agent.close();
    });
  });
}
