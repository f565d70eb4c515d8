/** Provides the agents at work. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { AgentsAtWork } from '../model/atwork';
import { IActivityModel, IAgentsAtWork, IApprovalsModel } from '../tokens';

/** One model for all that shows or stops agents. */
export const atWorkPlugin: JupyterFrontEndPlugin<IAgentsAtWork> = {
  id: 'jupyter-agent-exec:at-work',
  description: 'Provides the agents at work on this server.',
  autoStart: true,
  provides: IAgentsAtWork,
  requires: [IActivityModel],
  optional: [IApprovalsModel],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    approvals: IApprovalsModel | null
  ): IAgentsAtWork => {
    const { connectionFailure, events } = app.serviceManager;
    const isPaused = () => (approvals?.paused ?? null) !== null;
    const atWork = new AgentsAtWork(model.api, events.stream, isPaused);
    const refresh = () => atWork.refresh();
    document.addEventListener('visibilitychange', refresh);
    connectionFailure.connect(refresh);
    let paused = false;
    approvals?.changed.connect(() => {
      if (paused !== isPaused()) {
        paused = isPaused();
        refresh();
      }
    });
    approvals?.reconnected.connect(refresh);
    void app.restored.then(refresh);
    return atWork;
  }
};
