/** Opens the server's page on which a person gives agents access, takes it back, and erases. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { CommandIDs, TRANSLATION_DOMAIN } from '../tokens';
import { API_NAMESPACE } from '../wire';
import { keyIcon } from '../ui/icons';
import { labelled, takes } from '../ui/commands';

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

/** The commands that open the page: to give access or take it back, or to erase. */
export const agentTokensPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:agenttokens',
  description:
    'Opens the page on which the user gives agents access, and revokes it.',
  autoStart: true,
  optional: [ITranslator, ICommandPalette, INotebookTracker, ILauncher],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    notebooks: INotebookTracker | null,
    launcher: ILauncher | null
  ): void => {
    const { commands, serviceManager } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const open = (query: Record<string, string>) => {
      const { baseUrl } = serviceManager.serverSettings;
      const page = URLExt.join(baseUrl, API_NAMESPACE, 'access');
      const url = page + URLExt.objectToQueryString(query);
      window.open(url, '_blank', 'noopener');
    };
    commands.addCommand(CommandIDs.newToken, {
      label: labelled(trans.__('Give an Agent Access…')),
      icon: keyIcon,
      describedBy: takes('path', 'label'),
      execute: ({ path }) => {
        const notebook =
          typeof path === 'string' ? path : pathInFront(app, notebooks);
        open({ notebook });
      }
    });
    commands.addCommand(CommandIDs.erase, {
      label: trans.__('Erase From the Record…'),
      describedBy: takes('session_id!'),
      execute: ({ session_id }) => {
        open({ erase: String(session_id) });
        const refresh = () => void commands.execute(CommandIDs.refresh);
        window.addEventListener('focus', refresh, { once: true });
      }
    });
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.newToken, category });
    launcher?.add({
      command: CommandIDs.newToken,
      args: { label: trans.__('Connect an AI Agent') },
      category: trans.__('Other')
    });
  }
};
