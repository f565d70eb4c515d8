/** Opens agent sessions as notebooks that can only be read. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import {
  CommandIDs,
  IActivityModel,
  IApprovalsModel,
  TRANSLATION_DOMAIN
} from '../tokens';
import { Clock } from '../ui/clock';
import { reporter, takes } from '../ui/commands';
import { activityIcon } from '../ui/icons';
import { menuOpener } from '../ui/menu';
import { pathOf, sessionIn } from '../ui/sessionpaths';
import { untrusted } from '../ui/untrusted';
import { SessionDocument } from './document';
import { SessionDrive } from './drive';
import { addLeftOut } from './leftout';
import { SessionView } from './view';

/** The drive of agent sessions, and the command that opens one. */
export const sessionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:session',
  description:
    'Opens agent sessions as notebooks, which follow what agents run.',
  autoStart: true,
  requires: [
    IActivityModel,
    IApprovalsModel,
    INotebookTracker,
    IEditorServices
  ],
  optional: [ITranslator],
  activate: (
    { commands, serviceManager, shell }: JupyterFrontEnd,
    activity: IActivityModel,
    approvals: IApprovalsModel,
    notebooks: INotebookTracker,
    editors: IEditorServices,
    translator: ITranslator | null
  ): void => {
    const { contents, kernelspecs, serverSettings } = serviceManager;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const { api } = activity;
    const languageOf = async (name: string | null) => {
      await kernelspecs.ready;
      const { specs } = kernelspecs;
      const spec = specs?.kernelspecs[name ?? specs.default];
      return spec?.language.toLowerCase() ?? '';
    };
    contents.addDrive(
      new SessionDrive({ activity, languageOf, serverSettings, trans })
    );
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
    const documents = new Set<NotebookPanel['context']>();
    const follow = async ({
      context,
      id
    }: {
      context: NotebookPanel['context'];
      id: string;
    }) => {
      await context.ready;
      if (!context.isDisposed && !documents.has(context)) {
        const session = activity.open(id);
        const document = new SessionDocument(context.model, session);
        session.isActive = true;
        documents.add(context);
        context.disposed.connect(() => {
          document.dispose();
          documents.delete(context);
          activity.close(id);
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
        find: execution => activity.open(id).find(execution)
      });
      await follow({ context, id });
      if (!panel.isDisposed) {
        const rendermime = untrusted(content.rendermime);
        const view = new SessionView(panel, {
          ...shared,
          approvals: { ...shared, approvals, rendermime },
          session: activity.open(id)
        });
        panel.disposed.connect(() => view.dispose());
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
          const chosen = session_id ?? activity.selected?.id;
          const id =
            typeof execution_id === 'string' && session_id === undefined
              ? (await api.getExecution(execution_id)).session_id
              : chosen;
          if (typeof id === 'string') {
            await open(id, execution_id);
          }
        } catch (error) {
          shared.onError(error);
        }
      }
    });
  }
};
