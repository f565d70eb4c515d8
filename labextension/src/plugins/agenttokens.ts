/** Lets a person give agents access, and take it back. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import {
  CommandIDs,
  IActivityModel,
  IApprovalsModel,
  TRANSLATION_DOMAIN
} from '../tokens';
import { keyIcon } from '../widgets/icons';
import { labelled, reporter, takes } from './commands';

/** The drives under which pages open the server's own notebooks. */
const OWN_DRIVES = ['', 'RTC'];

/** The notebook in front, if it is one of the server's. */
function pathInFront(
  { serviceManager }: JupyterFrontEnd,
  notebooks: INotebookTracker | null
): string {
  const path = notebooks?.currentWidget?.context.path ?? '';
  const { contents } = serviceManager;
  // As a pattern, a name with an asterisk would match other notebooks too.
  return OWN_DRIVES.includes(contents.driveName(path)) && !path.includes('*')
    ? contents.localPath(path)
    : '';
}

/** The commands that give access and that list what was given. */
export const agentTokensPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:agenttokens',
  description:
    'Gives agents access, from the launcher and notebooks, and revokes it.',
  autoStart: true,
  requires: [IActivityModel],
  optional: [
    ITranslator,
    ICommandPalette,
    INotebookTracker,
    ILauncher,
    IApprovalsModel
  ],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    notebooks: INotebookTracker | null,
    launcher: ILauncher | null,
    approvals: IApprovalsModel | null
  ): void => {
    const { api } = model;
    const { commands, serviceManager } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const report = reporter(trans);
    const give = async (path: string) => {
      const { askForToken } = await import('../widgets/tokenform');
      const { showSecret } = await import('../widgets/tokensecret');
      const policy = approvals?.policy;
      const minted = await askForToken(api, path, trans, policy);
      if (minted) {
        await showSecret(minted, trans);
      }
    };
    const list = async () => {
      const { AgentTokens } = await import('../model/agenttokens');
      const { showTokens } = await import('../widgets/tokenlist');
      const { stream } = serviceManager.events;
      return showTokens(new AgentTokens(api, stream), trans);
    };
    commands.addCommand(CommandIDs.newToken, {
      label: labelled(trans.__('Give an Agent Access…')),
      icon: keyIcon,
      caption: trans.__('Create a token that lets an agent do what you allow'),
      describedBy: takes('path', 'label'),
      execute: async ({ path }) => {
        const wanted =
          typeof path === 'string' ? path : pathInFront(app, notebooks);
        await give(wanted).catch(report);
      }
    });
    commands.addCommand(CommandIDs.tokens, {
      label: trans.__('Agent Tokens…'),
      icon: keyIcon,
      describedBy: takes(),
      execute: async () => {
        try {
          if (await list()) {
            await commands.execute(CommandIDs.newToken);
          }
        } catch (error) {
          report(error);
        }
      }
    });
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.newToken, category });
    palette?.addItem({ command: CommandIDs.tokens, category });
    launcher?.add({
      command: CommandIDs.newToken,
      args: { label: trans.__('Connect an AI Agent') },
      category: trans.__('Other')
    });
  }
};
