/** Saves a session as a notebook, your own or a colleague's, and opens that. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { notebookIcon } from '@jupyterlab/ui-components';
import { CommandIDs } from '../tokens';
import type { ILiveModel } from '../tokens';
import { labelled, sessionCommand } from '../ui/commands';
import { freeName, notebookName } from '../ui/sessionpaths';

/** Save an export of a session under a free name and give its path. */
async function saveNotebook(
  { api }: ILiveModel,
  contents: Contents.IManager,
  folder: string,
  sessionId: string,
  exported: Promise<Blob>
): Promise<string> {
  const [session, file, listing] = await Promise.all([
    api.getSession(sessionId),
    exported,
    contents.get(folder, { content: true })
  ]);
  const taken = (listing.content as Contents.IModel[]).map(each => each.name);
  const path = PathExt.join(folder, freeName(notebookName(session), taken));
  const content: unknown = JSON.parse(await file.text());
  await contents.save(path, { type: 'notebook', format: 'json', content });
  return path;
}

/** Add the commands that save a session as a notebook and open that. */
export function addSaveNotebook(
  { commands, serviceManager }: JupyterFrontEnd,
  live: ILiveModel,
  trans: TranslationBundle,
  browser: IDefaultFileBrowser | null
): void {
  const { api } = live;
  const save = (exported: (id: string) => Promise<Blob>) =>
    sessionCommand(live, trans, async id => {
      const folder = browser?.model.path ?? '';
      const { contents } = serviceManager;
      const file = exported(id);
      const path = await saveNotebook(live, contents, folder, id, file);
      await commands.execute('docmanager:open', { path });
    });
  const { openNotebook, shareSession } = CommandIDs;
  commands.addCommand(openNotebook, {
    ...save(id => api.getNotebook(id)),
    label: trans.__('Open Agent Session as Notebook'),
    icon: notebookIcon
  });
  commands.addCommand(shareSession, {
    ...save(id => {
      const told = trans.__('The server tries whether the notebook runs.');
      const shown = Notification.emit(told, 'in-progress', {
        autoClose: false
      });
      const hide = () => Notification.dismiss(shown);
      return api.shareNotebook(id).finally(hide);
    }),
    label: labelled(trans.__('Export Agent Session for a Colleague'))
  });
  live.changed.connect(() => {
    commands.notifyCommandChanged(openNotebook);
    commands.notifyCommandChanged(shareSession);
  });
}
