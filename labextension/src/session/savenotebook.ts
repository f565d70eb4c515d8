/** Saves a session as a notebook of your own, and opens that. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { notebookIcon } from '@jupyterlab/ui-components';
import { CommandIDs } from '../tokens';
import type { ILiveModel } from '../tokens';
import { sessionCommand } from '../ui/commands';
import { freeName, notebookName } from '../ui/sessionpaths';

/** Save a session's export under a free name and give its path. */
async function saveNotebook(
  { api }: ILiveModel,
  contents: Contents.IManager,
  folder: string,
  sessionId: string
): Promise<string> {
  const [session, file, listing] = await Promise.all([
    api.getSession(sessionId),
    api.getNotebook(sessionId),
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
  live: ILiveModel,
  trans: TranslationBundle,
  browser: IDefaultFileBrowser | null
): void {
  const { openNotebook } = CommandIDs;
  commands.addCommand(openNotebook, {
    ...sessionCommand(live, trans, async id => {
      const folder = browser?.model.path ?? '';
      const { contents } = serviceManager;
      const path = await saveNotebook(live, contents, folder, id);
      await commands.execute('docmanager:open', { path });
    }),
    label: trans.__('Open Agent Session as Notebook'),
    icon: notebookIcon
  });
  live.changed.connect(() => commands.notifyCommandChanged(openNotebook));
}
