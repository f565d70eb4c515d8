/** Tells in a notebook's toolbar which agents work there. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import {
  IActivityModel,
  IAttachedSessions,
  TRANSLATION_DOMAIN
} from '../tokens';
import { Clock } from '../widgets/clock';
import { menuOpener } from '../widgets/menu';
import { AgentStatus } from '../widgets/toolbar';

/** The item's name; the settings place it among the others. */
const ITEM = 'agent-exec:status';

/** The item "agent-exec:status" of notebook toolbars. */
export const toolbarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:toolbar',
  description: 'Shows in a notebook’s toolbar which agents work there.',
  autoStart: true,
  requires: [IActivityModel, IAttachedSessions, IToolbarWidgetRegistry],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    attached: IAttachedSessions,
    toolbar: IToolbarWidgetRegistry,
    translator: ITranslator | null
  ): void => {
    const { commands } = app;
    const options = {
      attached,
      clock: new Clock(() => Date.now() + model.api.clockOffset),
      trans: (translator ?? nullTranslator).load(TRANSLATION_DOMAIN),
      execute: commands.execute.bind(commands),
      openMenu: menuOpener(commands)
    };
    toolbar.addFactory<NotebookPanel>('Notebook', ITEM, panel => {
      const { context, sessionContext } = panel;
      const item = new AgentStatus({
        ...options,
        place: () => ({
          path: context.localPath,
          kernelId: sessionContext.session?.kernel?.id ?? null
        })
      });
      const refresh = () => item.refresh();
      context.pathChanged.connect(refresh);
      sessionContext.kernelChanged.connect(refresh);
      item.disposed.connect(() => {
        context.pathChanged.disconnect(refresh);
        sessionContext.kernelChanged.disconnect(refresh);
      });
      return item;
    });
  }
};
