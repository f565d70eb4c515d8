/** What a person, or an agent, has changed of a cell since it ran. */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { IAgentExecApi } from '../tokens';
import { CommandIDs } from '../tokens';
import { reporter, takes } from '../ui/commands';

/** Add the command that compares the source that ran with another. */
export function addShowDifference(
  commands: CommandRegistry,
  { factoryService }: IEditorServices,
  notebooks: INotebookTracker,
  api: Pick<IAgentExecApi, 'getExecution'>,
  trans: TranslationBundle
): void {
  commands.addCommand(CommandIDs.showDifference, {
    label: trans.__('Compare With What Ran'),
    describedBy: takes('execution_id!', 'source!'),
    execute: async ({ execution_id, source }) => {
      try {
        const { lookalikes, source: ran } = await api.getExecution(
          String(execution_id)
        );
        const { SourceEditor } = await import('../ui/sourceeditor');
        const body = new SourceEditor({
          factory: factoryService.newInlineEditor,
          mimeType:
            notebooks.currentWidget?.content.codeMimetype ?? 'text/plain',
          source: String(source),
          before: ran,
          showsDifference: true,
          fold: true,
          lookalikes,
          trans
        });
        await showDialog({
          title: trans.__('What changed since it ran'),
          body,
          buttons: [Dialog.okButton({ label: trans.__('Close') })]
        });
      } catch (error) {
        reporter(trans)(error);
      }
    }
  });
}
