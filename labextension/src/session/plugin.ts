/** Opens agent sessions as notebooks that can only be read. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { PageConfig } from '@jupyterlab/coreutils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { find } from '@lumino/algorithm';
import { CommandIDs, ILiveModel, TRANSLATION_DOMAIN } from '../tokens';
import type { IAgentExecApi } from '../tokens';
import { SessionModel } from '../live/session';
import { Clock } from '../ui/clock';
import { reporter, takes } from '../ui/commands';
import { activityIcon } from '../ui/icons';
import { menuOpener } from '../ui/menu';
import { pathOf, sessionIn } from '../ui/sessionpaths';
import { untrusted } from '../ui/untrusted';
import { SessionDocument } from './document';
import { SessionDrive } from './drive';
import { addLeftOut } from './leftout';
import { addSaveNotebook } from './savenotebook';

/** Add the command that opens an execution's whole text in the main area. */
function addTextCommand(
  { commands, shell }: JupyterFrontEnd,
  api: IAgentExecApi,
  trans: TranslationBundle
): void {
  commands.addCommand(CommandIDs.openText, {
    label: trans.__('Open Full Output'),
    describedBy: takes('execution_id!'),
    execute: async args => {
      const executionId = String(args.execution_id);
      const id = `jp-agent-exec-text-${executionId}`;
      if (!find(shell.widgets('main'), widget => widget.id === id)) {
        const { TextViewer } = await import('./textviewer');
        const content = new TextViewer(api, executionId, trans);
        const widget = new MainAreaWidget({ content });
        widget.id = id;
        widget.title.label = trans.__('Full output');
        widget.title.closable = true;
        shell.add(widget, 'main');
      }
      shell.activateById(id);
    }
  });
}

/** The drive of agent sessions, and the commands that open them. */
export const sessionsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:sessions',
  description:
    'Opens agent sessions as notebooks, which follow what agents run.',
  autoStart: true,
  requires: [ILiveModel, INotebookTracker, IEditorServices],
  optional: [ITranslator, ICommandPalette, IDefaultFileBrowser],
  activate: (
    app: JupyterFrontEnd,
    live: ILiveModel,
    notebooks: INotebookTracker,
    editors: IEditorServices,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    browser: IDefaultFileBrowser | null
  ): void => {
    const { commands, serviceManager, shell } = app;
    const { contents, kernelspecs, serverSettings } = serviceManager;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const { api } = live;
    const models = new Map<string, SessionModel>();
    const modelOf = (id: string): SessionModel => {
      const model = models.get(id) ?? new SessionModel(id, live);
      models.set(id, model);
      return model;
    };
    const languageOf = async (name: string | null) => {
      await kernelspecs.ready;
      const { specs } = kernelspecs;
      const spec = specs?.kernelspecs[name ?? specs.default];
      return spec?.language.toLowerCase() ?? '';
    };
    contents.addDrive(
      new SessionDrive({
        api,
        isOpening: id =>
          !!notebooks.find(
            ({ context }) => !context.isReady && sessionIn(context.path) === id
          ),
        languageOf,
        open: modelOf,
        serverSettings,
        trans
      })
    );
    // JupyterLab would open the page's address by way of a browser of its drive.
    const address = PageConfig.getOption('treePath');
    if (sessionIn(address) !== null) {
      PageConfig.setOption('treePath', '');
      void app.restored.then(() =>
        commands.execute('docmanager:open', { path: address })
      );
    }
    const shared = {
      api,
      clock: new Clock(() => Date.now() + api.clockOffset),
      commands,
      editors,
      execute: commands.execute.bind(commands),
      openMenu: menuOpener(commands),
      specs: () => kernelspecs.specs,
      trans,
      onError: reporter(trans)
    };
    addTextCommand(app, api, trans);
    addSaveNotebook(app, live, trans, browser);
    const category = trans.__('Agents');
    for (const command of [CommandIDs.openNotebook, CommandIDs.shareSession]) {
      palette?.addItem({ command, category });
    }
    const documents = new Set<NotebookPanel['context']>();
    const choose = () => {
      const { currentWidget } = shell;
      live.selected =
        currentWidget instanceof NotebookPanel &&
        documents.has(currentWidget.context)
          ? sessionIn(currentWidget.context.path)
          : null;
    };
    shell.currentChanged?.connect(choose);
    const follow = async (context: NotebookPanel['context'], id: string) => {
      await context.ready;
      if (!context.isDisposed && !documents.has(context)) {
        const session = modelOf(id);
        const document = new SessionDocument(context.model, session);
        session.follow();
        documents.add(context);
        choose();
        context.disposed.connect(() => {
          document.dispose();
          documents.delete(context);
          session.dispose();
          models.delete(id);
          choose();
        });
      }
    };
    const show = async (panel: NotebookPanel) => {
      const { content, context } = panel;
      const id = sessionIn(context.path);
      if (id === null) {
        return;
      }
      // It asks for one when it has read its file.
      const none = { shouldStart: false, canStart: false };
      context.sessionContext.kernelPreference = none;
      panel.title.icon = activityIcon;
      addLeftOut(content.rendermime, {
        ...shared,
        find: execution => modelOf(id).find(execution)
      });
      const view = import('./view');
      // Before the view: who reads the session next finds all its cells.
      await follow(context, id);
      const { SessionView } = await view;
      if (!panel.isDisposed) {
        const rendermime = untrusted(content.rendermime);
        const shown = new SessionView(panel, {
          ...shared,
          approvals: { ...shared, live, rendermime },
          session: modelOf(id)
        });
        panel.disposed.connect(() => shown.dispose());
      }
    };
    notebooks.forEach(each => void show(each));
    notebooks.widgetAdded.connect((_, panel) => void show(panel));
    const open = async (id: string, executionId: unknown): Promise<void> => {
      const path = pathOf(await api.getSession(id));
      const panel: NotebookPanel | undefined = await commands.execute(
        'docmanager:open',
        { path }
      );
      if (!panel) {
        return;
      }
      shell.activateById(panel.id);
      if (typeof executionId === 'string') {
        await panel.context.ready;
        const session = modelOf(id);
        if (!session.find(executionId)) {
          await session.readAll();
        }
        await commands.execute(CommandIDs.goToCell, {
          path: contents.localPath(path),
          cell_id: executionId
        });
      }
    };
    commands.addCommand(CommandIDs.openSession, {
      label: trans.__('Open Agent Session'),
      icon: activityIcon,
      describedBy: takes('session_id', 'execution_id'),
      execute: async ({ execution_id, session_id }) => {
        try {
          const id =
            session_id ??
            (await api.getExecution(String(execution_id))).session_id;
          await open(String(id), execution_id);
        } catch (error) {
          shared.onError(error);
        }
      }
    });
  }
};
