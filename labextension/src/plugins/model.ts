/** Provides the model of agent activity. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStateDB } from '@jupyterlab/statedb';
import { AgentExecApi } from '../api/client';
import { ActivityModel } from '../model/activity';
import { IActivityModel } from '../tokens';

/** Where the chosen session is kept for the next time. */
const STATE_KEY = 'jupyter-agent-exec:panel';

/** The session shown last time. */
async function restoreSession(state: IStateDB | null): Promise<string | null> {
  try {
    const saved = await state?.fetch(STATE_KEY);
    const id = (saved as { session_id?: unknown } | undefined)?.session_id;
    return typeof id === 'string' ? id : null;
  } catch {
    // State that cannot be read is no reason to show nothing.
    return null;
  }
}

/** One model for all that shows or controls agent activity. */
export const modelPlugin: JupyterFrontEndPlugin<IActivityModel> = {
  id: 'jupyter-agent-exec:model',
  description: 'Provides the model of what agents do on this server.',
  autoStart: true,
  provides: IActivityModel,
  optional: [IStateDB],
  activate: (app: JupyterFrontEnd, state: IStateDB | null): IActivityModel => {
    const { serverSettings, events } = app.serviceManager;
    const model = new ActivityModel({
      api: new AgentExecApi(serverSettings),
      events: events.stream,
      restored: restoreSession(state)
    });
    model.selectedChanged.connect((_, id) => {
      void state?.save(STATE_KEY, { session_id: id }).catch(() => undefined);
    }, model);
    return model;
  }
};
