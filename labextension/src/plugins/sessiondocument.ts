/** Opens a session as a live notebook that can only be read. */
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
import {
  INotebookWidgetFactory,
  NotebookActions,
  NotebookPanel,
  NotebookWidgetFactory
} from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { notebookIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { LiveNotebook } from '../model/livenotebook';
import {
  DOCUMENT_PATTERN,
  documentPath,
  sessionAt,
  SessionDrive
} from '../model/sessiondrive';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import type { IAgentExecApi } from '../tokens';
import { activityIcon } from '../widgets/icons';
import { makeReadOnly } from '../widgets/readonly';
import { untrusted } from '../widgets/untrusted';
import { reporter } from './report';
import { sessionArgs, sessionCommand, watchSelected } from './selected';

/** The name of the factory; Jupyter Notebook looks for "Notebook" in it. */
const FACTORY = 'Agent Session Notebook';

/** The name of the type of file. */
const FILE_TYPE = 'agent-session';

/** What a document's toolbar offers. */
const TOOLS = [
  CommandIDs.openPanel,
  CommandIDs.interrupt,
  CommandIDs.openNotebook,
  CommandIDs.exportNotebook
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
    describedBy: {
      args: {
        type: 'object',
        properties: {
          back: {
            type: 'boolean',
            description: trans.__('Whether to go to the previous cell')
          }
        }
      }
    },
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
  trans: TranslationBundle
): Promise<void> {
  const { content, context, title } = panel;
  const sessionId = sessionAt(context.localPath);
  const [{ LiveNotebook }, { SessionBanner, sessionTitle }, { SteadyView }] =
    await Promise.all([
      import('../model/livenotebook'),
      import('../widgets/sessionbanner'),
      import('../model/view'),
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
  // JupyterLab takes a new title for a new name of the file, which there is not.
  const rename = context.rename.bind(context);
  context.rename = name =>
    name === title.label ? new Promise(() => undefined) : rename(name);
  live.changed.connect(({ session }) => {
    if (session) {
      title.label = sessionTitle(session, trans);
    }
  });
  panel.contentHeader.addWidget(new SessionBanner(live, trans));
}

/** The drive of sessions, and the documents that show them. */
export const sessionDocumentPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:session-document',
  description: 'Opens agent sessions as live notebooks that can only be read.',
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
    ICommandPalette
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
    palette: ICommandPalette | null
  ): void => {
    const { commands, docRegistry, serviceManager } = app;
    const { contents, events, serverSettings } = serviceManager;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const refusal = trans.__(
      'An agent session is a record: it can be read, not changed.'
    );
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
    factory.widgetCreated.connect((_, panel) => {
      panel.addClass('jp-AgentExecDocument');
      panel.title.icon = activityIcon;
      if (notebooks) {
        panel.content.editorConfig = notebooks.editorConfig;
        panel.content.notebookConfig = notebooks.notebookConfig;
      }
      makeReadOnly(panel);
      void documents.add(panel);
      void follow(panel, model.api, events.stream, trans).catch(
        reporter(trans)
      );
    });
    void restorer?.restore(documents, {
      command: 'docmanager:open',
      args: ({ context }) => ({ path: context.path, factory: FACTORY }),
      name: ({ context }) => context.path
    });
    addKeys(commands, documents, trans);
    const command = CommandIDs.openDocument;
    commands.addCommand(command, {
      ...sessionCommand(
        model,
        trans
      )(async id => {
        await commands.execute('docmanager:open', {
          path: documentPath(id),
          factory: FACTORY,
          options: { mode: 'split-right' }
        });
      }),
      label: trans.__('Open Agent Session'),
      caption: trans.__(
        'Open the chosen agent session as a live notebook beside your own'
      ),
      icon: notebookIcon,
      describedBy: { args: sessionArgs(trans) }
    });
    watchSelected(model, () => commands.notifyCommandChanged(command));
    palette?.addItem({ command, category: trans.__('Agents') });
  }
};
