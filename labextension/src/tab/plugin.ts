/** Lets agents reach the notebooks that this page has open. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import { Channel } from '../api/channel';
import { OpenDocuments } from './documents';
import { ILiveModel } from '../tokens';

/** Keeps the server told of open notebooks, and makes agents' changes in them. */
export const documentsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:documents',
  description: 'Lets agents work in the notebooks that are open in this page.',
  autoStart: true,
  optional: [INotebookTracker, ILiveModel],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker | null,
    live: ILiveModel | null
  ): void => {
    if (!tracker) {
      return;
    }
    const { contents, serverSettings } = app.serviceManager;
    const channel = new Channel(serverSettings);
    let isFirst = true;
    channel.opened.connect(() => {
      if (!isFirst) {
        void live?.recover(); // events were lost with the connection
      }
      isFirst = false;
    });
    void new OpenDocuments({
      tracker,
      contents,
      channel,
      scheduled: NotebookActions.executionScheduled
    });
  }
};
