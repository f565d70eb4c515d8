/** Copies what an agent ran into a notebook, and leads to the original. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { Cell } from '@jupyterlab/cells';
import { Clipboard, ICommandPalette, Notification } from '@jupyterlab/apputils';
import {
  INotebookTracker,
  NotebookActions,
  NotebookPanel
} from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { copyIcon, pasteIcon, runIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { METADATA_KEY, readCellRecord } from '../model/cellrecord';
import type { Wanted } from '../model/insertion';
import { ORIGIN_KEY, readOrigin } from '../model/origin';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import type { IExecution } from '../tokens';
import { describedBy, labelled, reporter } from './commands';

type Args = ReadonlyPartialJSONObject;

/** The arguments of the commands that copy. */
function copyArgs(trans: TranslationBundle) {
  return describedBy({
    execution_ids: {
      type: 'array',
      items: { type: 'string' },
      description: trans.__(
        'The IDs of executions. Default: those of the selected cells.'
      )
    },
    execution_id: trans.__('The ID of an execution'),
    session_id: trans.__('The ID of a session, to use all its cells'),
    from_execution_id: trans.__(
      'The ID of the session’s first execution to use'
    ),
    label: trans.__('The label of the command in a menu')
  });
}

/** The executions that the selected cells of a notebook show. */
function selectedIds(app: JupyterFrontEnd): string[] {
  const panel = app.shell.currentWidget;
  const cells =
    panel instanceof NotebookPanel ? panel.content.selectedCells : [];
  return cells.flatMap(({ model }) => {
    const record =
      readCellRecord(model.getMetadata(METADATA_KEY)) ??
      readOrigin(model.getMetadata(ORIGIN_KEY));
    return record ? [record.execution_id] : [];
  });
}

/** What a command is about. */
function wantedBy(args: Args, app: JupyterFrontEnd): Wanted {
  const { execution_id, execution_ids, from_execution_id, session_id } = args;
  if (Array.isArray(execution_ids)) {
    return { ids: execution_ids.map(String) };
  }
  if (typeof execution_id === 'string') {
    return { ids: [execution_id] };
  }
  if (typeof session_id === 'string') {
    const from = from_execution_id;
    return {
      sessionId: session_id,
      fromId: typeof from === 'string' ? from : null
    };
  }
  return { ids: selectedIds(app) };
}

/** What is wanted as the panel has it; null if it has not all of it. */
function shownIn(model: IActivityModel, wanted: Wanted): IExecution[] | null {
  if (!('ids' in wanted)) {
    return null;
  }
  const shown = new Map(
    model.selected?.executions.map(({ execution }) => [execution.id, execution])
  );
  const found = wanted.ids.flatMap(id => shown.get(id) ?? []);
  return found.length === wanted.ids.length ? found : null;
}

/** Whether a cell has an id, or shows an execution. */
function isCell({ model }: Cell, cellId: unknown, executionId: unknown) {
  const record = readCellRecord(model.getMetadata(METADATA_KEY));
  return (
    model.id === cellId ||
    (record !== null &&
      (record.cell_id === cellId || record.execution_id === executionId))
  );
}

/** Show one of a notebook's cells, and choose it. */
async function showCell(
  panel: NotebookPanel,
  cellId: unknown,
  executionId: unknown
): Promise<void> {
  await panel.context.ready;
  await panel.revealed;
  const { content } = panel;
  const at = content.widgets.findIndex(each =>
    isCell(each, cellId, executionId)
  );
  if (at >= 0) {
    content.deselectAll();
    content.activeCellIndex = at;
    content.mode = 'command';
    await content.scrollToItem(at, 'smart');
    content.widgets[at].node.focus({ preventScroll: true });
  }
}

/** Add the command that opens a notebook at a cell. */
function addGoToCommand(
  { commands, shell }: JupyterFrontEnd,
  notebooks: INotebookTracker,
  trans: TranslationBundle
): void {
  commands.addCommand(CommandIDs.goToCell, {
    label: trans.__('Go to Cell in Notebook'),
    caption: trans.__('Open the notebook at the cell that an agent ran'),
    describedBy: describedBy(
      {
        path: trans.__('The path of the notebook'),
        cell_id: trans.__('The ID of the cell'),
        execution_id: trans.__('The ID of the execution that the cell shows')
      },
      ['path']
    ),
    execute: async ({ path, cell_id, execution_id }) => {
      // The one that is open, whichever drive it came from, else a new one.
      const open = notebooks.find(each => each.context.localPath === path);
      if (open) {
        shell.activateById(open.id);
      }
      try {
        const panel =
          open ?? (await commands.execute('docmanager:open', { path }));
        if (panel && (cell_id || execution_id)) {
          await showCell(panel as NotebookPanel, cell_id, execution_id);
        }
      } catch (error) {
        reporter(trans)(error);
      }
    }
  });
}

/** The commands that copy agents' cells, and what tells of copies. */
export const insertPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:insert',
  description:
    'Adds commands that copy agents’ cells into your notebook, and go to the original cell.',
  autoStart: true,
  requires: [IActivityModel, INotebookTracker],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    notebooks: INotebookTracker,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { api } = model;
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const report = reporter(trans);
    const read = async (wanted: Wanted) => {
      const { readWanted } = await import('../model/insertion');
      return readWanted(api, wanted);
    };
    const insert = async (args: Args, withOutputs: boolean) => {
      const panel = notebooks.currentWidget;
      if (!panel) {
        Notification.warning(
          trans.__(
            'No notebook is open. Open the notebook that you want to insert the cells into.'
          ),
          { autoClose: 8000 }
        );
        return null;
      }
      const { insertCopies } = await import('../model/insertion');
      const executions = await read(wantedBy(args, app));
      await panel.context.ready;
      insertCopies(panel.content, executions, withOutputs);
      shell.activateById(panel.id);
      return executions.length > 0 ? panel : null;
    };
    commands.addCommand(CommandIDs.insertCells, {
      label: labelled(trans.__('Insert Into My Notebook')),
      describedBy: copyArgs(trans),
      caption: trans.__(
        'Insert the agent’s cells, with their outputs, below the active cell of the notebook that you used last'
      ),
      icon: pasteIcon,
      execute: args => insert(args, true).then(() => undefined, report)
    });
    commands.addCommand(CommandIDs.runAgain, {
      label: labelled(trans.__('Run Again in My Kernel')),
      describedBy: copyArgs(trans),
      caption: trans.__(
        'Insert the agent’s source below the active cell of the notebook that you used last, and run it there'
      ),
      icon: runIcon,
      execute: async args => {
        const panel = await insert(args, false).catch(report);
        if (panel) {
          void NotebookActions.run(panel.content, panel.sessionContext);
        }
      }
    });
    commands.addCommand(CommandIDs.copySource, {
      label: labelled(trans.__('Copy Source')),
      describedBy: copyArgs(trans),
      caption: trans.__('Copy the agent’s source to the clipboard'),
      icon: copyIcon,
      execute: async args => {
        try {
          const wanted = wantedBy(args, app);
          // Without a wait if that can be: browsers let a page copy for a
          // moment after a click, and the keyboard may be elsewhere by then.
          const executions = shownIn(model, wanted) ?? (await read(wanted));
          const sources = executions.map(({ source }) => source);
          Clipboard.copyToSystem(sources.join('\n\n'));
        } catch (error) {
          report(error);
        }
      }
    });
    addGoToCommand(app, notebooks, trans);
    const category = trans.__('Agents');
    for (const command of [
      CommandIDs.insertCells,
      CommandIDs.runAgain,
      CommandIDs.copySource
    ]) {
      palette?.addItem({ command, category });
    }
    const show = async ({ content, disposed }: NotebookPanel) => {
      const { Origins } = await import('../widgets/origins');
      if (!content.isDisposed) {
        const origins = new Origins(
          content,
          trans,
          commands.execute.bind(commands)
        );
        disposed.connect(() => origins.dispose());
      }
    };
    notebooks.forEach(panel => void show(panel));
    notebooks.widgetAdded.connect((_, panel) => void show(panel));
  }
};
