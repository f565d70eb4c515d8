/** Adds the panel "Agent activity". */
import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { CommandToolbarButton, refreshIcon } from '@jupyterlab/ui-components';
import { CommandIDs, ILiveModel, TRANSLATION_DOMAIN } from '../tokens';
import { WaitingList } from '../approvals/waitinglist';
import { activityIcon } from '../ui/icons';
import { labelled, takes } from '../ui/commands';
import { ActivityPanel, PANEL_ID } from './panel';
import { SearchModel } from './search';

/** Where the panel stands among the others of its side. */
const RANK = 850;

/** The sidebar panel, and the commands that open and refresh it. */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:panel',
  description:
    'Adds a sidebar panel with the agent sessions, and what asks for a decision.',
  autoStart: true,
  requires: [ILiveModel],
  optional: [ILayoutRestorer, ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    live: ILiveModel,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    commands.addCommand(CommandIDs.openPanel, {
      label: labelled(trans.__('Show Agent Activity')),
      icon: activityIcon,
      describedBy: takes('session_id', 'execution_id', 'label'),
      execute: async ({ execution_id, session_id }) => {
        if (execution_id === undefined && session_id === undefined) {
          shell.activateById(PANEL_ID);
        } else {
          const { openSession } = CommandIDs;
          await commands.execute(openSession, { execution_id, session_id });
        }
      }
    });
    commands.addCommand(CommandIDs.refresh, {
      label: trans.__('Refresh Agent Activity'),
      icon: refreshIcon,
      describedBy: takes(),
      execute: async () => {
        await Promise.all([live.recover(), search.refresh()]);
      }
    });
    const search = new SearchModel(live.api);
    const waiting = {
      execute: commands.execute.bind(commands),
      live,
      now: () => Date.now() + live.api.clockOffset,
      trans
    };
    const panel = new ActivityPanel({
      ...waiting,
      commands,
      search,
      translator: translator ?? nullTranslator
    });
    panel.header.addWidget(new WaitingList(waiting));
    panel.header.addWidget(panel.find);
    // Tab stops at the first, and arrow keys lead on.
    const pause = new CommandToolbarButton({ commands, id: CommandIDs.pause });
    panel.toolbar.insertItem(0, CommandIDs.pause, pause);
    restorer?.add(panel, PANEL_ID);
    shell.add(panel, 'right', { rank: RANK });
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.openPanel, category });
    palette?.addItem({ command: CommandIDs.refresh, category });
  }
};
