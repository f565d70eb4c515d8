/** Tells in the status bar how many agents are at work. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { CommandIDs, IAgentsAtWork, TRANSLATION_DOMAIN } from '../tokens';
import { AtWorkItem } from '../widgets/atwork';
import { activityIcon } from '../widgets/icons';

/** The item's id, and its place: after the kernels, before what changes often. */
const ITEM = 'jupyter-agent-exec:at-work';
const RANK = 5;

/** The item, and the command that leads to an agent at work. */
export const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:status',
  description: 'Shows in the status bar how many agents are at work.',
  autoStart: true,
  requires: [IAgentsAtWork],
  optional: [IStatusBar, ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    atWork: IAgentsAtWork,
    statusBar: IStatusBar | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const command = CommandIDs.showAtWork;
    commands.addCommand(command, {
      label: trans.__('Show Agent at Work'),
      caption: trans.__(
        'Show what asks for approval, or else what runs, in the panel'
      ),
      icon: activityIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      isEnabled: () => atWork.agents.length > 0,
      execute: async () => {
        const agent = atWork.agents[0];
        if (agent) {
          await commands.execute(CommandIDs.openPanel, {
            session_id: agent.session.id,
            execution_id: agent.pending[0].id
          });
        }
      }
    });
    atWork.changed.connect(() => commands.notifyCommandChanged(command));
    palette?.addItem({ command, category: trans.__('Agents') });
    statusBar?.registerStatusItem(ITEM, {
      item: new AtWorkItem(atWork, trans, commands.execute.bind(commands)),
      align: 'left',
      rank: RANK,
      isActive: () => atWork.agents.length > 0,
      activeStateChanged: atWork.changed
    });
  }
};
