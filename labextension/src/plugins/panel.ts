/** Adds the panel "Agent activity". */
import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';
import { CommandIDs, IActivityModel, TRANSLATION_DOMAIN } from '../tokens';
import { createHighlight } from '../widgets/highlight';
import { activityIcon } from '../widgets/icons';
import { ActivityPanel, PANEL_ID } from '../widgets/panel';
import { reporter } from './report';
import { labelled, sessionArgs } from './selected';

/** Where the panel stands among the others of its side. */
const RANK = 850;

/** What the panel can be asked to show. */
function placeArgs(trans: TranslationBundle): ReadonlyJSONObject {
  const { properties } = sessionArgs(trans);
  return {
    type: 'object',
    properties: {
      ...(properties as ReadonlyJSONObject),
      execution_id: {
        type: 'string',
        description: trans.__('The id of an execution to show')
      }
    }
  };
}

/** Show a session or an execution, whichever is named. */
async function show(
  model: IActivityModel,
  args: ReadonlyPartialJSONObject
): Promise<void> {
  const { execution_id, session_id } = args;
  const sessionId =
    typeof execution_id === 'string' && typeof session_id !== 'string'
      ? (await model.api.getExecution(execution_id)).session_id
      : session_id;
  if (typeof sessionId === 'string') {
    model.select(sessionId);
  }
  if (typeof execution_id === 'string') {
    model.selected?.reveal(execution_id);
  }
}

/** The sidebar panel, and the commands that open and refresh it. */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:panel',
  description:
    'Adds a sidebar panel that shows what agents run, as it happens.',
  autoStart: true,
  requires: [IActivityModel, IRenderMimeRegistry, IEditorLanguageRegistry],
  optional: [ILayoutRestorer, ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    rendermime: IRenderMimeRegistry,
    languages: IEditorLanguageRegistry,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands, serviceManager, shell } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const report = reporter(trans);
    commands.addCommand(CommandIDs.openPanel, {
      label: labelled(trans.__('Show Agent Activity')),
      caption: trans.__('Show what agents run on this server'),
      icon: activityIcon,
      describedBy: { args: placeArgs(trans) },
      execute: async args => {
        shell.activateById(PANEL_ID);
        await show(model, args).catch(report);
      }
    });
    commands.addCommand(CommandIDs.refresh, {
      label: trans.__('Refresh Agent Activity'),
      caption: trans.__('Ask the server again for all that is shown'),
      icon: refreshIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => model.refresh()
    });
    const panel = new ActivityPanel({
      model,
      commands,
      rendermime,
      trans,
      translator: translator ?? nullTranslator,
      execute: (id, args) => commands.execute(id, args),
      highlight: createHighlight(
        languages,
        () => serviceManager.kernelspecs.specs
      ),
      onError: report
    });
    restorer?.add(panel, PANEL_ID);
    shell.add(panel, 'right', { rank: RANK });
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.openPanel, category });
    palette?.addItem({ command: CommandIDs.refresh, category });
  }
};
