/** Saves a session as a notebook of your own, and opens that. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { notebookIcon } from '@jupyterlab/ui-components';
import { CommandIDs } from '../tokens';
import type { IActivityModel } from '../tokens';
import { sessionCommand, watchSelected } from '../ui/commands';
import { freeName, notebookName } from '../ui/sessionpaths';

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

/** Add the command that opens a session as a notebook of the user's own. */
export function addSaveNotebook(
  { commands, serviceManager }: JupyterFrontEnd,
  model: IActivityModel,
  trans: TranslationBundle,
  browser: IDefaultFileBrowser | null
): void {
  const { openNotebook } = CommandIDs;
  commands.addCommand(openNotebook, {
    ...sessionCommand(model, trans, async id => {
      const folder = browser?.model.path ?? '';
      const { contents } = serviceManager;
      const path = await saveNotebook(model, contents, folder, id);
      await commands.execute('docmanager:open', { path });
    }),
    label: trans.__('Open Agent Session as Notebook'),
    icon: notebookIcon
  });
  watchSelected(model, () => commands.notifyCommandChanged(openNotebook));
}
