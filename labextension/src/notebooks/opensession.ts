/** Saves a session as a notebook of your own, and opens that. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { Contents } from '@jupyterlab/services';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
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

/** The command that opens a session as a notebook. */
export const sessionsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:sessions',
  description: 'Opens agent sessions as notebooks.',
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
    watchSelected(model, () =>
      commands.notifyCommandChanged(CommandIDs.openNotebook)
    );
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.openNotebook, category });
  }
};
