/** Shows in notebooks which agents work there and which cells they ran. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { tellAway } from './away';
import { addImages } from '../images/images';
import { addNext } from '../review/next';
import { tellRescues } from '../review/rescue';
import { Reviews } from '../review/reviews';
import { addRound } from '../review/round';
import { CommandIDs, ILiveModel, TRANSLATION_DOMAIN } from '../tokens';
import { addAcceptOutputs } from '../badges/acceptance';
import { addShowDifference } from '../badges/difference';
import { NotebookBadges } from '../badges/badges';
import { StaleMarks } from '../badges/stale';
import { Clock } from '../ui/clock';
import { menuOpener } from '../ui/menu';
import { NotebookApprovals } from '../approvals/notebookapprovals';
import { AgentStatus, ITEM } from '../atwork/toolbar';
import { reporter, showNotebook, takes } from '../ui/commands';
import { sessionIn } from '../ui/sessionpaths';

/** Show what needs approval where it would run, and add the command that leads there. */
function showInNotebooks(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  options: NotebookApprovals.IOptions
): void {
  const { trans } = options;
  const shown = new Map<NotebookPanel, NotebookApprovals>();
  const show = (panel: NotebookPanel) => {
    if (sessionIn(panel.context.path) !== null) {
      return;
    }
    shown.set(panel, new NotebookApprovals(panel, options));
    panel.disposed.connect(() => {
      shown.get(panel)?.dispose();
      shown.delete(panel);
    });
  };
  notebooks.forEach(show);
  notebooks.widgetAdded.connect((_, panel) => show(panel));
  app.commands.addCommand(CommandIDs.goToProposal, {
    label: trans.__('Go to Cell in Notebook'),
    describedBy: takes('path!', 'execution_id!'),
    execute: async ({ path, execution_id }) => {
      try {
        const panel = await showNotebook(app, notebooks, String(path));
        if (panel) {
          await panel.context.ready;
          await panel.revealed;
          await shown.get(panel)?.reveal(String(execution_id));
        }
      } catch (error) {
        reporter(trans)(error);
      }
    }
  });
}

/** A badge on each cell that an agent ran, and an item in the toolbar. */
export const notebooksPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:toolbar',
  description:
    'Shows in notebooks which agents work there, which cells they ran, and what needs approval.',
  autoStart: true,
  requires: [ILiveModel, INotebookTracker],
  optional: [
    IToolbarWidgetRegistry,
    IEditorServices,
    ITranslator,
    ICommandPalette
  ],
  activate: (
    app: JupyterFrontEnd,
    live: ILiveModel,
    notebooks: INotebookTracker,
    toolbar: IToolbarWidgetRegistry | null,
    editors: IEditorServices | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands, serviceManager } = app;
    const options = {
      live,
      reviews: new Reviews(live),
      clock: new Clock(() => Date.now() + live.api.clockOffset),
      trans: (translator ?? nullTranslator).load(TRANSLATION_DOMAIN),
      execute: commands.execute.bind(commands),
      openMenu: menuOpener(commands)
    };
    addAcceptOutputs(commands, live.api, options.trans);
    addImages(app, notebooks, palette, options.trans);
    addNext(app, notebooks, options.reviews, palette, options.trans);
    addRound(app, notebooks, live, palette, options.trans);
    tellAway(app, live, options.trans);
    tellRescues(notebooks, live.api, options.trans);
    const show = (panel: NotebookPanel) => {
      if (sessionIn(panel.context.path) !== null) {
        return; // it shows itself what is known of it
      }
      const badges = new NotebookBadges(panel.content, options);
      const marks = new StaleMarks(panel, live, options.trans);
      panel.disposed.connect(() => {
        badges.dispose();
        marks.dispose();
      });
      if (!editors) {
        return;
      }
      void import('../proposals/proposededits').then(({ ProposedEdits }) => {
        if (panel.isDisposed) {
          return; // nobody would end it
        }
        const edits = new ProposedEdits(panel, {
          editors,
          live,
          trans: options.trans
        });
        panel.disposed.connect(() => edits.dispose());
      });
    };
    notebooks.forEach(show);
    notebooks.widgetAdded.connect((_, panel) => show(panel));
    if (editors) {
      addShowDifference(commands, editors, notebooks, live.api, options.trans);
      showInNotebooks(app, notebooks, {
        ...options,
        editors,
        specs: () => serviceManager.kernelspecs.specs
      });
    }
    toolbar?.addFactory<NotebookPanel>(
      'Notebook',
      ITEM,
      panel => new AgentStatus({ ...options, panel })
    );
  }
};
