/** Saves a session as a notebook, and runs it again. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, InputDialog } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { Contents } from '@jupyterlab/services';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { notebookIcon } from '@jupyterlab/ui-components';
import { freeName, notebookName } from './notebookname';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import { sessionCommand, watchSelected } from '../ui/commands';

/** Save a session's export under a free name and give its path. */
async function saveNotebook(
  model: IActivityModel,
  contents: Contents.IManager,
  folder: string,
  sessionId: string
): Promise<string> {
  const [session, file, listing] = await Promise.all([
    model.api.getSession(sessionId),
    model.api.getNotebook(sessionId),
    contents.get(folder, { content: true })
  ]);
  const taken = (listing.content as Contents.IModel[]).map(each => each.name);
  const path = PathExt.join(folder, freeName(notebookName(session), taken));
  const content: unknown = JSON.parse(await file.text());
  await contents.save(path, { type: 'notebook', format: 'json', content });
  return path;
}

/** Run a session's code again, if the person wants it, and show how it compares. */
async function runAgain(
  { commands }: JupyterFrontEnd,
  { api, selected }: IActivityModel,
  id: string,
  trans: TranslationBundle
): Promise<void> {
  const { comparison = null } = selected?.id === id ? selected : {};
  // What runs again is what ran first.
  const of = comparison?.of ?? id;
  const { button, value } = await InputDialog.getBoolean({
    title: trans.__('Run all cells again in a new kernel?'),
    label: trans.__('Isolate the kernel'),
    okLabel: trans.__('Run Again')
  });
  if (button.accept) {
    const { session_id } = await api.runAgain(of, value === true);
    await commands.execute(CommandIDs.openPanel, { session_id });
  }
}

/** The commands about all of a session. */
export const sessionsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:sessions',
  description: 'Opens agent sessions as notebooks, and runs them again.',
  autoStart: true,
  requires: [IActivityModel],
  optional: [ITranslator, ICommandPalette, IDefaultFileBrowser],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    browser: IDefaultFileBrowser | null
  ): void => {
    const { commands, serviceManager } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    commands.addCommand(CommandIDs.openNotebook, {
      ...sessionCommand(model, trans, async id => {
        const folder = browser?.model.path ?? '';
        const { contents } = serviceManager;
        const path = await saveNotebook(model, contents, folder, id);
        await commands.execute('docmanager:open', { path });
      }),
      label: trans.__('Open Agent Session as Notebook'),
      icon: notebookIcon
    });
    commands.addCommand(CommandIDs.runAgain, {
      ...sessionCommand(model, trans, id => runAgain(app, model, id, trans)),
      label: trans.__('Run Agent Session Again and Compare…')
    });
    for (const command of [CommandIDs.openNotebook, CommandIDs.runAgain]) {
      watchSelected(model, () => commands.notifyCommandChanged(command));
    }
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.openNotebook, category });
  }
};
