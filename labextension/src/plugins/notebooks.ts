/** Shows in notebooks which agents work there and which cells they ran. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { AttachedSessions } from '../model/attached';
import { Reviews } from '../model/reviews';
import {
  IActivityModel,
  IApprovalsModel,
  IAttachedSessions,
  TRANSLATION_DOMAIN
} from '../tokens';
import { NotebookBadges } from '../widgets/badges';
import { Clock } from '../widgets/clock';
import { menuOpener } from '../widgets/menu';
import { AgentStatus } from '../widgets/toolbar';

/** The toolbar item's name; the settings place it among the others. */
const ITEM = 'agent-exec:status';

/** One model of the agents in notebooks, for all that shows them. */
function createModel(
  app: JupyterFrontEnd,
  model: IActivityModel,
  notebooks: INotebookTracker,
  approvals: IApprovalsModel | null
): IAttachedSessions {
  const { events } = app.serviceManager;
  const attached = new AttachedSessions(model.api, events.stream);
  const look = () => {
    attached.isActive = notebooks.size > 0;
  };
  notebooks.widgetAdded.connect((_, panel) => {
    panel.disposed.connect(look);
    look();
  });
  // An event may have been missed while another page was looked at.
  notebooks.currentChanged.connect(() => attached.refresh());
  model.refreshed.connect(() => attached.refresh());
  approvals?.reconnected.connect(() => attached.refresh());
  look();
  return attached;
}

/** A badge on each cell that an agent ran, and an item in the toolbar. */
export const notebooksPlugin: JupyterFrontEndPlugin<IAttachedSessions> = {
  id: 'jupyter-agent-exec:toolbar',
  description:
    'Shows in notebooks which agents work there and which cells they ran.',
  autoStart: true,
  provides: IAttachedSessions,
  requires: [IActivityModel, INotebookTracker],
  optional: [IToolbarWidgetRegistry, IApprovalsModel, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    notebooks: INotebookTracker,
    toolbar: IToolbarWidgetRegistry | null,
    approvals: IApprovalsModel | null,
    translator: ITranslator | null
  ): IAttachedSessions => {
    const { commands } = app;
    const attached = createModel(app, model, notebooks, approvals);
    const reviews = new Reviews(model.api, app.serviceManager.events.stream);
    model.refreshed.connect(() => reviews.refresh());
    const options = {
      attached,
      reviews,
      clock: new Clock(() => Date.now() + model.api.clockOffset),
      trans: (translator ?? nullTranslator).load(TRANSLATION_DOMAIN),
      execute: commands.execute.bind(commands),
      openMenu: menuOpener(commands)
    };
    const show = (panel: NotebookPanel) => {
      const badges = new NotebookBadges(panel.content, options);
      panel.disposed.connect(() => badges.dispose());
      void import('../widgets/proposededits').then(({ ProposedEdits }) => {
        const edits = new ProposedEdits(panel, {
          api: model.api,
          events: app.serviceManager.events.stream,
          reconnected: approvals?.reconnected,
          trans: options.trans
        });
        panel.disposed.connect(() => edits.dispose());
      });
    };
    notebooks.forEach(show);
    notebooks.widgetAdded.connect((_, panel) => show(panel));
    toolbar?.addFactory<NotebookPanel>(
      'Notebook',
      ITEM,
      panel => new AgentStatus({ ...options, panel })
    );
    return attached;
  }
};
