/** Provides the model of agents in people's kernels. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { AttachedSessions } from '../model/attached';
import { IActivityModel, IApprovalsModel, IAttachedSessions } from '../tokens';

/** One model for all that shows agents in notebooks. */
export const attachedPlugin: JupyterFrontEndPlugin<IAttachedSessions> = {
  id: 'jupyter-agent-exec:attached',
  description: 'Provides the agents that work in notebooks.',
  autoStart: true,
  provides: IAttachedSessions,
  requires: [IActivityModel, INotebookTracker],
  optional: [IApprovalsModel],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    notebooks: INotebookTracker,
    approvals: IApprovalsModel | null
  ): IAttachedSessions => {
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
    approvals?.reconnected.connect(() => attached.refresh());
    look();
    return attached;
  }
};
