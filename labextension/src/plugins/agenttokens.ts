/** Lets a person give agents access, and take it back. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import { keyIcon } from '../widgets/icons';
import { describedBy, reporter } from './commands';

/** The drives under which pages open the server's own notebooks. */
const OWN_DRIVES = ['', 'RTC'];

/** The notebook in front, if it is one of the server's. */
function pathInFront(
  { serviceManager }: JupyterFrontEnd,
  notebooks: INotebookTracker | null
): string {
  const path = notebooks?.currentWidget?.context.path ?? '';
  const { contents } = serviceManager;
  return OWN_DRIVES.includes(contents.driveName(path))
    ? contents.localPath(path)
    : '';
}

/** The commands that give access and that list what was given. */
export const agentTokensPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:agenttokens',
  description: 'Adds commands that create and revoke agent tokens.',
  autoStart: true,
  requires: [IActivityModel],
  optional: [ITranslator, ICommandPalette, INotebookTracker, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    notebooks: INotebookTracker | null,
    registry: ISettingRegistry | null
  ): void => {
    const { api } = model;
    const { commands, serviceManager } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const report = reporter(trans);
    const readDefaults = async () => {
      // Without settings that can be read, all is as it is by default.
      const settings = await registry
        ?.load(agentTokensPlugin.id)
        .catch(() => null);
      return settings?.composite ?? {};
    };
    const give = async (path: string) => {
      const { firstDraft } = await import('../model/tokendraft');
      const { TokenForm } = await import('../model/tokenform');
      const { askForToken } = await import('../widgets/tokenform');
      const { showSecret } = await import('../widgets/tokensecret');
      const draft = firstDraft(await readDefaults(), path);
      const minted = await askForToken(new TokenForm(api, draft), trans);
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
      label: trans.__('Give an Agent Access…'),
      caption: trans.__('Create a token that lets an agent do what you allow'),
      describedBy: describedBy({
        path: trans.__(
          'The path of a notebook, or a pattern. Default: the active notebook.'
        )
      }),
      execute: async ({ path }) => {
        const wanted =
          typeof path === 'string' ? path : pathInFront(app, notebooks);
        await give(wanted).catch(report);
      }
    });
    commands.addCommand(CommandIDs.tokens, {
      label: trans.__('Agent Tokens…'),
      caption: trans.__('See which agents have access, and revoke it'),
      icon: keyIcon,
      describedBy: describedBy(),
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
  }
};
