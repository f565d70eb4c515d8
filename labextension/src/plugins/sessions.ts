/** Opens a session as a live notebook that can only be read; exports it. */
import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  CommandToolbarButton,
  ICommandPalette,
  WidgetTracker
} from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { PageConfig, PathExt } from '@jupyterlab/coreutils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import {
  INotebookWidgetFactory,
  NotebookActions,
  NotebookPanel,
  NotebookWidgetFactory
} from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { Contents } from '@jupyterlab/services';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { launchIcon, notebookIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { LiveNotebook } from '../model/livenotebook';
import { freeName, notebookName } from '../model/notebook';
import {
  DOCUMENT_PATTERN,
  documentPath,
  sessionAt,
  SessionDrive
} from '../model/sessiondrive';
import { allowOtherTitle } from '../model/workarounds';
import {
  CommandIDs,
  IActivityModel,
  IApprovalsModel,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { IAgentExecApi } from '../tokens';
import type { ApprovalView } from '../widgets/approval';
import { Clock } from '../widgets/clock';
import { activityIcon } from '../widgets/icons';
import { makeReadOnly } from '../widgets/readonly';
import { untrusted } from '../widgets/untrusted';
import {
  openDocument,
  reporter,
  sessionCommand,
  takes,
  watchSelected
} from './commands';

/** The name of the factory; Jupyter Notebook looks for "Notebook" in it. */
const FACTORY = 'Agent Session Notebook';

/** The name of the type of file. */
const FILE_TYPE = 'agent-session';

/** What a document's toolbar offers. */
const TOOLS = [
  CommandIDs.openPanel,
  CommandIDs.interrupt,
  CommandIDs.openNotebook
];

/** The buttons of a document; they are about its session. */
function tools(commands: CommandRegistry, { context }: NotebookPanel) {
  const args = { session_id: sessionAt(context.localPath) };
  return TOOLS.map(id => ({
    name: id,
    widget: new CommandToolbarButton({ commands, id, args, label: '' })
  }));
}

/**
 * Keys that go from cell to cell. JupyterLab's own are for notebooks that it
 * keeps track of, and those can be changed and run.
 */
function addKeys(
  commands: CommandRegistry,
  documents: WidgetTracker<NotebookPanel>,
  trans: TranslationBundle
): void {
  const command = CommandIDs.moveInDocument;
  commands.addCommand(command, {
    label: trans.__('Go to the Next or Previous Cell of an Agent Session'),
    describedBy: takes('back'),
    isEnabled: () => documents.currentWidget !== null,
    execute: ({ back }) => {
      const content = documents.currentWidget?.content;
      if (content && back === true) {
        NotebookActions.selectAbove(content);
      } else if (content) {
        NotebookActions.selectBelow(content);
      }
    }
  });
  const selector =
    '.jp-AgentExecDocument .jp-Notebook.jp-mod-commandMode:not(.jp-mod-readWrite) :focus';
  for (const [key, back] of [
    ['ArrowDown', false],
    ['J', false],
    ['ArrowUp', true],
    ['K', true]
  ] as const) {
    commands.addKeyBinding({ command, args: { back }, keys: [key], selector });
  }
}

/** Keep a document in step with its session, once it has been read. */
async function follow(
  panel: NotebookPanel,
  api: IAgentExecApi,
  events: LiveNotebook.IOptions['events'],
  trans: TranslationBundle,
  asking: ApprovalView.IOptions | null
): Promise<void> {
  const { content, context, title } = panel;
  const sessionId = sessionAt(context.localPath);
  const [
    { LiveNotebook },
    { SessionBanner },
    { SteadyView },
    { NotebookApprovals },
    { titleText }
  ] = await Promise.all([
    import('../model/livenotebook'),
    import('../widgets/sessionbanner'),
    import('../model/view'),
    import('../widgets/notebookapprovals'),
    import('../widgets/wording'),
    context.ready
  ]);
  if (panel.isDisposed || sessionId === null) {
    return;
  }
  const view = new SteadyView(content);
  const live = new LiveNotebook({
    api,
    events,
    model: context.model,
    sessionId,
    hold: change => view.hold(change)
  });
  allowOtherTitle(panel);
  live.changed.connect(({ session }) => {
    if (session) {
      title.label = titleText(session, trans);
    }
  });
  panel.contentHeader.addWidget(new SessionBanner(live, trans));
  if (asking) {
    const shown = new NotebookApprovals(panel, { ...asking, sessionId });
    panel.disposed.connect(() => shown.dispose());
  }
}

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

/** Add the command that saves a session as a notebook, and opens it. */
function addExportCommand(
  { commands, serviceManager }: JupyterFrontEnd,
  model: IActivityModel,
  browser: IDefaultFileBrowser | null,
  trans: TranslationBundle
): void {
  commands.addCommand(CommandIDs.openNotebook, {
    ...sessionCommand(model, trans, async id => {
      const folder = browser?.model.path ?? '';
      const { contents } = serviceManager;
      const path = await saveNotebook(model, contents, folder, id);
      await commands.execute('docmanager:open', { path });
    }),
    label: trans.__('Open Agent Session as Notebook'),
    icon: launchIcon
  });
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
          import('../model/rerun'),
          import('../widgets/rerun'),
          import('../widgets/wording'),
          api.getSession(id)
        ]);
      const label = trans.__('Re-run: %1', titleText(session, trans));
      await openDocument(app, `jp-agent-exec-rerun-${id}`, label, async () => {
        const rerun = new RerunModel(id, api);
        const options = { api, execute, onError, rendermime, rerun, trans };
        return new RerunView(options);
      });
    }),
    label: trans.__('Run Agent Session Again and Compare…')
  });
}

/**
 * Open the document that the page's address names, such as after a reload.
 *
 * JupyterLab would show an error instead: its file browser opens what an
 * address names, and it shows no drive of sessions.
 */
function openAddressed({ commands, restored }: JupyterFrontEnd): void {
  const address = PageConfig.getOption('treePath');
  if (new RegExp(DOCUMENT_PATTERN).test(address)) {
    PageConfig.setOption('treePath', '');
    const path = decodeURIComponent(address);
    const open = () =>
      commands.execute('docmanager:open', { path, factory: FACTORY });
    void restored.then(open);
  }
}

/** The drive of sessions, and the documents that show them. */
export const sessionsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:session-document',
  description:
    'Opens agent sessions as live, read-only notebooks, and exports them.',
  autoStart: true,
  requires: [
    IActivityModel,
    IRenderMimeRegistry,
    NotebookPanel.IContentFactory,
    IEditorServices
  ],
  optional: [
    INotebookWidgetFactory,
    ILayoutRestorer,
    ITranslator,
    ICommandPalette,
    IDefaultFileBrowser,
    IApprovalsModel
  ],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    rendermime: IRenderMimeRegistry,
    contentFactory: NotebookPanel.IContentFactory,
    services: IEditorServices,
    notebooks: NotebookWidgetFactory.IFactory | null,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    browser: IDefaultFileBrowser | null,
    approvals: IApprovalsModel | null
  ): void => {
    const { commands, docRegistry, serviceManager } = app;
    const { contents, events, serverSettings } = serviceManager;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const refusal = trans.__('An agent session is read-only.');
    contents.addDrive(new SessionDrive(model.api, serverSettings, refusal));
    docRegistry.addFileType({
      name: FILE_TYPE,
      displayName: trans.__('Agent Session'),
      contentType: 'notebook',
      fileFormat: 'json',
      pattern: DOCUMENT_PATTERN,
      icon: activityIcon
    });
    const factory = new NotebookWidgetFactory({
      name: FACTORY,
      label: trans.__('Agent Session'),
      fileTypes: [FILE_TYPE],
      defaultFor: [FILE_TYPE],
      modelName: 'notebook',
      readOnly: true,
      preferKernel: false,
      canStartKernel: false,
      rendermime: untrusted(rendermime),
      contentFactory,
      mimeTypeService: services.mimeTypeService,
      translator: translator ?? nullTranslator,
      toolbarFactory: panel => tools(commands, panel)
    });
    docRegistry.addWidgetFactory(factory);
    const documents = new WidgetTracker<NotebookPanel>({
      namespace: 'agent-exec-documents'
    });
    const { api } = model;
    const asking = approvals && {
      api,
      approvals,
      clock: new Clock(() => Date.now() + api.clockOffset),
      editors: services,
      specs: () => serviceManager.kernelspecs.specs,
      trans
    };
    factory.widgetCreated.connect((_, panel) => {
      panel.addClass('jp-AgentExecDocument');
      panel.title.icon = activityIcon;
      if (notebooks) {
        panel.content.editorConfig = notebooks.editorConfig;
        panel.content.notebookConfig = notebooks.notebookConfig;
      }
      makeReadOnly(panel);
      void documents.add(panel);
      void follow(panel, api, events.stream, trans, asking).catch(
        reporter(trans)
      );
    });
    void restorer?.restore(documents, {
      command: 'docmanager:open',
      args: ({ context }) => ({ path: context.path, factory: FACTORY }),
      name: ({ context }) => context.path
    });
    openAddressed(app);
    addKeys(commands, documents, trans);
    commands.addCommand(CommandIDs.openDocument, {
      ...sessionCommand(model, trans, async id => {
        await commands.execute('docmanager:open', {
          path: documentPath(id),
          factory: FACTORY,
          options: { mode: 'split-right' }
        });
      }),
      label: trans.__('Open Agent Session'),
      icon: notebookIcon
    });
    addExportCommand(app, model, browser, trans);
    addRerunCommand(app, model, rendermime, trans);
    for (const command of [
      CommandIDs.openDocument,
      CommandIDs.openNotebook,
      CommandIDs.runAgain
    ]) {
      watchSelected(model, () => commands.notifyCommandChanged(command));
      palette?.addItem({ command, category: trans.__('Agents') });
    }
  }
};
