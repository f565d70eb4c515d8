/** Shows in notebooks what agents ask to run there. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { IActivityModel, IApprovalsModel, TRANSLATION_DOMAIN } from '../tokens';
import { Clock } from '../widgets/clock';
import { NotebookApprovals } from '../widgets/notebookapprovals';

/** The question and its answers, above the cell that would run. */
export const askingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:asking',
  description: 'Shows in notebooks what agents ask a person to approve.',
  autoStart: true,
  requires: [IActivityModel, IApprovalsModel, INotebookTracker],
  optional: [ITranslator],
  activate: (
    _app: JupyterFrontEnd,
    model: IActivityModel,
    approvals: IApprovalsModel,
    notebooks: INotebookTracker,
    translator: ITranslator | null
  ): void => {
    const { api } = model;
    const options = {
      api,
      approvals,
      drafts: new Map<string, string>(),
      clock: new Clock(() => Date.now() + api.clockOffset),
      trans: (translator ?? nullTranslator).load(TRANSLATION_DOMAIN)
    };
    const show = (panel: NotebookPanel) => {
      const shown = new NotebookApprovals(panel, options);
      panel.disposed.connect(() => shown.dispose());
    };
    notebooks.forEach(show);
    notebooks.widgetAdded.connect((_, panel) => show(panel));
  }
};
