/** Shows in notebooks which cells agents ran. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import {
  IActivityModel,
  IAttachedSessions,
  IReviews,
  TRANSLATION_DOMAIN
} from '../tokens';
import { NotebookBadges } from '../widgets/badges';
import { Clock } from '../widgets/clock';
import { menuOpener } from '../widgets/menu';

/** Badges on the cells of all notebooks that are opened. */
export const badgesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:badges',
  description: 'Shows in notebooks which cells agents ran, and how that went.',
  autoStart: true,
  requires: [IActivityModel, IAttachedSessions, INotebookTracker],
  optional: [ITranslator, IReviews],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    attached: IAttachedSessions,
    notebooks: INotebookTracker,
    translator: ITranslator | null,
    reviews: IReviews | null
  ): void => {
    const { commands } = app;
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
    };
    notebooks.forEach(show);
    notebooks.widgetAdded.connect((_, panel) => show(panel));
  }
};
