/** Saves a session as a notebook, and runs it again. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { Contents } from '@jupyterlab/services';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { notebookIcon } from '@jupyterlab/ui-components';
import { freeName, notebookName } from './notebookname';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import {
  openDocument,
  reporter,
  sessionCommand,
  watchSelected
} from '../ui/commands';

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

/** Add the command that runs a session again, and shows how it compares. */
function addRerunCommand(
  app: JupyterFrontEnd,
  model: IActivityModel,
  rendermime: IRenderMimeRegistry,
  trans: TranslationBundle
): void {
  const { api } = model;
  const execute = app.commands.execute.bind(app.commands);
  const onError = reporter(trans);
  app.commands.addCommand(CommandIDs.runAgain, {
    ...sessionCommand(model, trans, async id => {
      const [{ RerunModel }, { RerunView }, { titleText }, session] =
        await Promise.all([
          import('./model'),
          import('./view'),
          import('../ui/wording'),
          api.getSession(id)
        ]);
      const label = trans.__('Re-run: %1', titleText(session));
      await openDocument(app, `jp-agent-exec-rerun-${id}`, label, async () => {
        const rerun = new RerunModel(id, api);
        const options = { api, execute, onError, rendermime, rerun, trans };
        return new RerunView(options);
      });
    }),
    label: trans.__('Run Agent Session Again and Compare…')
  });
}

/** The commands about all of a session. */
export const sessionsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:sessions',
  description: 'Opens agent sessions as notebooks, and runs them again.',
  autoStart: true,
  requires: [IActivityModel, IRenderMimeRegistry],
  optional: [ITranslator, ICommandPalette, IDefaultFileBrowser],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    rendermime: IRenderMimeRegistry,
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
    addRerunCommand(app, model, rendermime, trans);
    for (const command of [CommandIDs.openNotebook, CommandIDs.runAgain]) {
      watchSelected(model, () => commands.notifyCommandChanged(command));
    }
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.openNotebook, category });
  }
};
