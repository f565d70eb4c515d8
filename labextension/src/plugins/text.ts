/** Lets a person read all that an execution printed. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { MainAreaWidget } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { find } from '@lumino/algorithm';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';

/** The command that opens an execution's whole text. */
export const textPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:text',
  description: 'Adds a command that opens the whole text of an execution.',
  autoStart: true,
  requires: [IActivityModel],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    translator: ITranslator | null
  ): void => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    commands.addCommand(CommandIDs.openText, {
      label: trans.__('Open Whole Text of a Cell'),
      caption: trans.__('Open all that a cell of an agent session printed'),
      describedBy: {
        args: {
          type: 'object',
          properties: {
            execution_id: {
              type: 'string',
              description: trans.__('The id of the execution')
            }
          },
          required: ['execution_id']
        }
      },
      execute: async args => {
        const { TextViewer } = await import('../widgets/textviewer');
        const executionId = String(args.execution_id);
        const id = `jp-agent-exec-text-${executionId}`;
        if (!find(shell.widgets('main'), widget => widget.id === id)) {
          const content = new TextViewer(model.api, executionId, trans);
          const widget = new MainAreaWidget({ content });
          widget.id = id;
          widget.title.label = trans.__('Text of a cell');
          widget.title.closable = true;
          shell.add(widget, 'main');
        }
        shell.activateById(id);
      }
    });
  }
};
