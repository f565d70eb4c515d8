/** Lets a person keep a session as a notebook. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { Contents } from '@jupyterlab/services';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { downloadIcon, launchIcon } from '@jupyterlab/ui-components';
import { freeName, notebookName } from '../model/notebook';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import { download } from '../widgets/download';
import { sessionArgs, sessionCommand, watchSelected } from './selected';

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

/** Give a session's export to the browser to keep. */
async function downloadNotebook(
  model: IActivityModel,
  sessionId: string
): Promise<void> {
  const [session, file] = await Promise.all([
    model.api.getSession(sessionId),
    model.api.getNotebook(sessionId)
  ]);
  download(file, `${notebookName(session)}.ipynb`);
}

/** The commands that export a session and open it as a notebook. */
export const notebookPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:notebook',
  description:
    'Adds commands that download an agent session as a notebook or open it.',
  autoStart: true,
  requires: [IActivityModel],
  optional: [IDefaultFileBrowser, ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    browser: IDefaultFileBrowser | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands, serviceManager } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const common = sessionCommand(model, trans);
    commands.addCommand(CommandIDs.exportNotebook, {
      ...common(id => downloadNotebook(model, id)),
      label: trans.__('Download Agent Session as Notebook'),
      caption: trans.__('Download the chosen agent session as a notebook'),
      icon: downloadIcon,
      describedBy: { args: sessionArgs(trans) }
    });
    commands.addCommand(CommandIDs.openNotebook, {
      ...common(async id => {
        const folder = browser?.model.path ?? '';
        const { contents } = serviceManager;
        const path = await saveNotebook(model, contents, folder, id);
        await commands.execute('docmanager:open', { path });
      }),
      label: trans.__('Open Agent Session as Notebook'),
      caption: trans.__(
        'Save the chosen agent session as a notebook and open it'
      ),
      icon: launchIcon,
      describedBy: { args: sessionArgs(trans) }
    });
    const category = trans.__('Agents');
    for (const command of [
      CommandIDs.exportNotebook,
      CommandIDs.openNotebook
    ]) {
      watchSelected(model, () => commands.notifyCommandChanged(command));
      palette?.addItem({ command, category });
    }
  }
};
