/** Tells the user of a notebook that its kernel died, and which variables it has. */
import { Notification } from '@jupyterlab/apputils';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IAgentExecApi } from '../api/client';
import { reporter } from '../ui/commands';
import { cellName, momentText } from '../ui/wording';

/** Tell it for all notebooks, beside JupyterLab's dialog, which knows of no checkpoint. */
export function tellRescues(
  notebooks: INotebookTracker,
  api: IAgentExecApi,
  trans: TranslationBundle
): void {
  const tell = async (kernelId: string, name: string) => {
    const { rescued } = await api.getCheckpoints(kernelId);
    if (rescued !== null) {
      const text = trans.__(
        'The kernel of %1 died; its variables are those of %2, before cell %3.',
        name,
        momentText(rescued.at, Date.now()),
        cellName(rescued, trans)
      );
      Notification.warning(text, { autoClose: false });
    }
  };
  const follow = ({ sessionContext }: NotebookPanel) => {
    const look = (context: ISessionContext, status: Kernel.Status) => {
      const kernel = context.session?.kernel;
      if (status === 'autorestarting' && kernel) {
        tell(kernel.id, context.name).catch(reporter(trans));
      }
    };
    sessionContext.statusChanged.connect(look);
  };
  notebooks.forEach(follow);
  notebooks.widgetAdded.connect((_, panel) => follow(panel));
}
