/** Copies what an agent ran into a notebook, and leads to an agent's cell. */
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
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { allExecutions } from '../api/client';
import { CommandIDs, ILiveModel, TRANSLATION_DOMAIN } from '../tokens';
import type { IExecution } from '../tokens';
import { reporter, sessionCommand, showNotebook, takes } from '../ui/commands';
import { sessionIn } from '../ui/sessionpaths';

type Args = ReadonlyPartialJSONObject;

/** The arguments of the commands that copy. */
const COPY_ARGUMENTS = takes('execution_ids', 'execution_id');

/** The executions that the selected cells of a notebook show. */
function selectedIds(app: JupyterFrontEnd): string[] {
  const panel = app.shell.currentWidget;
  const cells =
    panel instanceof NotebookPanel ? panel.content.selectedCells : [];
  return cells.flatMap(({ model }) => {
    const record = readCellRecord(model.getMetadata(METADATA_KEY));
    return record ? [record.execution_id] : [];
  });
}

/** The executions that a command is about. */
function wantedBy(
  { execution_id, execution_ids }: Args,
  app: JupyterFrontEnd
): string[] {
  if (Array.isArray(execution_ids)) {
    return execution_ids.map(String);
  }
  return typeof execution_id === 'string' ? [execution_id] : selectedIds(app);
}

/** The sources of executions in the document in front; null if it has not all of them. */
function sourcesIn(
  app: JupyterFrontEnd,
  ids: readonly string[]
): string[] | null {
  const panel = app.shell.currentWidget;
  const isSession =
    panel instanceof NotebookPanel && sessionIn(panel.context.path) !== null;
  const cells = isSession ? Array.from(panel.content.model?.cells ?? []) : [];
  const found = ids.flatMap(
    id => cells.find(each => each.id === id)?.sharedModel.getSource() ?? []
  );
  return found.length === ids.length ? found : null;
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
    const { bringIntoView } = await import('../ui/view');
    const cell = content.widgets[at];
    await bringIntoView(content, cell);
    if (content.activeCell === cell) {
      cell.node.focus({ preventScroll: true }); // which makes it the active one
    }
  }
}

/** Add the command that opens a notebook at a cell. */
function addGoToCommand(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.goToCell, {
    label: trans.__('Go to Cell in Notebook'),
    describedBy: takes('path!', 'cell_id', 'execution_id'),
    execute: async ({ path, cell_id, execution_id }) => {
      try {
        const panel = await showNotebook(app, notebooks, String(path));
        if (panel && (cell_id || execution_id)) {
          await showCell(panel, cell_id, execution_id);
        }
      } catch (error) {
        reporter(trans)(error);
      }
    }
  });
}

/** Add the command that puts what a session's notebook lacks of it there. */
function addInsertMissing(
  app: JupyterFrontEnd,
  live: ILiveModel,
  notebooks: INotebookTracker,
  read: (ids: readonly string[]) => Promise<IExecution[]>,
  trans: TranslationBundle
): void {
  const { api } = live;
  const insert = async (sessionId: string): Promise<void> => {
    const { path } = await api.getSession(sessionId);
    const panel = path && (await showNotebook(app, notebooks, path));
    if (!panel) {
      return;
    }
    const executions = await allExecutions(api, sessionId);
    await panel.context.ready;
    const model = panel.content.model!;
    const { insertMissing, missingFrom } = await import('./insertion');
    const missing = missingFrom(model, executions).map(({ id }) => id);
    const count = insertMissing(model, executions, await read(missing));
    const text =
      count > 0
        ? trans._n('%1 cell inserted', '%1 cells inserted', count)
        : trans.__('No cell is missing.');
    Notification.info(text, { autoClose: 5000 });
  };
  app.commands.addCommand(CommandIDs.insertMissing, {
    ...sessionCommand(live, trans, insert),
    label: trans.__('Insert Missing Cells Into the Notebook')
  });
}

/** Whether a notebook is the user's own, and still open. */
function isTheirs(panel: NotebookPanel | null): panel is NotebookPanel {
  return (
    panel !== null &&
    !panel.isDisposed &&
    sessionIn(panel.context.path) === null
  );
}

/** The commands that copy agents' cells. */
export const insertPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:insert',
  description:
    'Adds commands that copy agents’ cells into your notebook, and go to the original cell.',
  autoStart: true,
  requires: [ILiveModel, INotebookTracker],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    live: ILiveModel,
    notebooks: INotebookTracker,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { api } = live;
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const report = reporter(trans);
    // With inert outputs, as they would enter a notebook.
    const read = (ids: readonly string[]) =>
      Promise.all(ids.map(id => api.getExecution(id)));
    let last: NotebookPanel | null = null;
    notebooks.currentChanged.connect((_, panel) => {
      last = isTheirs(panel) ? panel : last;
    });
    const insert = async (args: Args): Promise<NotebookPanel | null> => {
      const panel = isTheirs(notebooks.currentWidget)
        ? notebooks.currentWidget
        : isTheirs(last)
          ? last
          : notebooks.find(isTheirs);
      if (!panel) {
        Notification.warning(
          trans.__(
            'No notebook is open. Open the notebook that you want to insert the cells into.'
          ),
          { autoClose: 8000 }
        );
        return null;
      }
      const { insertCopies } = await import('./insertion');
      const executions = await read(wantedBy(args, app));
      await panel.context.ready;
      insertCopies(panel.content, executions);
      shell.activateById(panel.id);
      return panel;
    };
    const insertAndRun = async (args: Args) => {
      const panel = await insert(args);
      if (panel) {
        const { content, sessionContext } = panel;
        await NotebookActions.run(content, sessionContext);
      }
    };
    commands.addCommand(CommandIDs.insertAndRun, {
      label: trans.__('Insert Into My Notebook and Run'),
      describedBy: COPY_ARGUMENTS,
      icon: runIcon,
      execute: args => insertAndRun(args).catch(report)
    });
    commands.addCommand(CommandIDs.insertCells, {
      label: trans.__('Insert Into My Notebook'),
      describedBy: COPY_ARGUMENTS,
      icon: pasteIcon,
      execute: args => insert(args).catch(report)
    });
    commands.addCommand(CommandIDs.copySource, {
      label: trans.__('Copy Source'),
      describedBy: COPY_ARGUMENTS,
      icon: copyIcon,
      execute: async args => {
        try {
          const wanted = wantedBy(args, app);
          // Without a wait if that can be: browsers let a page copy for a
          // moment after a click, and the keyboard may be elsewhere by then.
          const sources =
            sourcesIn(app, wanted) ??
            (await read(wanted)).map(({ source }) => source);
          Clipboard.copyToSystem(sources.join('\n\n'));
        } catch (error) {
          report(error);
        }
      }
    });
    addInsertMissing(app, live, notebooks, read, trans);
    addGoToCommand(app, notebooks, trans);
    const category = trans.__('Agents');
    for (const command of [CommandIDs.insertCells, CommandIDs.copySource]) {
      palette?.addItem({ command, category });
    }
  }
};
