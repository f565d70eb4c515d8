/** What a person does in an open notebook, with JupyterLab's own means. */
import { expect } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator, Page } from '@playwright/test';
import type { OpenNotebook } from './notebook';

/** A person who looks at a page. */
export class Person {
  constructor(readonly page: Page) {}

  /** A cell of the notebook in front. */
  cell(index: number): Locator {
    return this.page.locator(
      `.jp-NotebookPanel:visible .jp-Notebook [data-windowed-list-index="${index}"]`
    );
  }

  /** What stands before a cell's source: its count, or a star. */
  prompt(index: number): Locator {
    return this.cell(index).locator('.jp-InputArea-prompt');
  }

  /** What is told of an agent's cell. */
  badge(index: number): Locator {
    return this.cell(index).getByRole('group', { name: /^Agent .*, / });
  }

  /** A dialog of JupyterLab's. */
  get dialog(): Locator {
    return this.page.locator('.jp-Dialog');
  }

  /** Choose a cell. */
  async select(index: number): Promise<void> {
    await this.prompt(index).click();
  }

  /** Run a cell: a click on the toolbar's button. */
  async run(index: number): Promise<void> {
    await this.select(index);
    await this._tool('run');
  }

  /** Restart the kernel with the toolbar's button, and confirm. */
  async restart(): Promise<void> {
    await this._tool('restart');
    await this.answer('Restart');
  }

  /** The kernel of the notebook in front. */
  kernelId(): Promise<string | undefined> {
    return this.page.evaluate(() => {
      const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
      return panel.sessionContext.session?.kernel?.id;
    });
  }

  /** Choose something in a menu. */
  async choose(menu: string, item: string): Promise<void> {
    const bar = this.page.getByRole('menubar').first();
    await bar.getByRole('menuitem', { name: menu, exact: true }).click();
    await this.page.getByRole('menuitem', { name: item }).click();
  }

  /** Give a notebook another name, and wait until it has it. */
  async rename(notebook: OpenNotebook, name: string): Promise<OpenNotebook> {
    await this.choose('File', 'Rename Notebook');
    await this.dialog.getByRole('textbox').fill(name);
    await this.answer('Rename');
    const folder = notebook.path.slice(0, notebook.path.lastIndexOf('/'));
    const path = `${folder}/${name}`;
    await expect
      .poll(() =>
        this.page.evaluate(() => {
          const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
          return panel.context.path;
        })
      )
      .toBe(path);
    return notebook.at(path);
  }

  /** Close the only notebook, and say what becomes of what is unsaved. */
  async close(answer: 'Save' | 'Discard'): Promise<void> {
    await this.page
      .locator('#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current')
      .locator('.lm-TabBar-tabCloseIcon')
      .click();
    await this.answer(answer);
    await expect(this.page.locator('.jp-NotebookPanel')).toHaveCount(0);
  }

  /** Click on a button of a dialog. */
  async answer(button: string): Promise<void> {
    await this.dialog.locator('.jp-Dialog-button', { hasText: button }).click();
    await expect(this.dialog).toHaveCount(0);
  }

  private async _tool(name: string): Promise<void> {
    await this.page
      .locator(`.jp-NotebookPanel:visible [data-jp-item-name="${name}"]`)
      .click();
  }
}
