/** Adds the panel "Agent activity". */
import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import { find } from '@lumino/algorithm';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import {
  CommandIDs,
  IActivityModel,
  IApprovalsModel,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { IAgentExecApi } from '../tokens';
import { PauseButton, WaitingList } from '../approvals/asking';
import { Clock } from '../ui/clock';
import { activityIcon } from '../ui/icons';
import { menuOpener } from '../ui/menu';
import { untrusted } from '../ui/untrusted';
import { labelled, reporter, takes } from '../ui/commands';
import { ActivityPanel, PANEL_ID } from './panel';
import { SearchModel } from './search';

/** Where the panel stands among the others of its side. */
const RANK = 850;

/** Show a session or an execution, whichever is named. */
async function show(
  panel: ActivityPanel,
  api: IAgentExecApi,
  { execution_id, session_id }: ReadonlyPartialJSONObject
): Promise<void> {
  const executionId =
    typeof execution_id === 'string' ? execution_id : undefined;
  if (typeof session_id === 'string') {
    panel.showCells(session_id, executionId);
  } else if (executionId !== undefined) {
    const execution = await api.getExecution(executionId);
    panel.showCells(execution.session_id, executionId);
  }
}

/** Add the command that opens an execution's whole text in the main area. */
function addTextCommand(
  { commands, shell }: JupyterFrontEnd,
  api: IAgentExecApi,
  trans: TranslationBundle
): void {
  commands.addCommand(CommandIDs.openText, {
    label: trans.__('Open full output'),
    describedBy: takes('execution_id!'),
    execute: async args => {
      const executionId = String(args.execution_id);
      const id = `jp-agent-exec-text-${executionId}`;
      if (!find(shell.widgets('main'), widget => widget.id === id)) {
        const { TextViewer } = await import('./textviewer');
        const content = new TextViewer(api, executionId, trans);
        const widget = new MainAreaWidget({ content });
        widget.id = id;
        widget.title.label = trans.__('Full output');
        widget.title.closable = true;
        shell.add(widget, 'main');
      }
      shell.activateById(id);
    }
  });
}

/** The sidebar panel, and the commands that open and refresh it. */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:panel',
  description:
    'Adds a sidebar panel that shows what agents run, as it happens.',
  autoStart: true,
  requires: [
    IActivityModel,
    IApprovalsModel,
    IRenderMimeRegistry,
    IEditorServices
  ],
  optional: [ILayoutRestorer, ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    approvals: IApprovalsModel,
    rendermime: IRenderMimeRegistry,
    editors: IEditorServices,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands, serviceManager, shell } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const report = reporter(trans);
    commands.addCommand(CommandIDs.openPanel, {
      label: labelled(trans.__('Show Agent Activity')),
      icon: activityIcon,
      describedBy: takes('session_id', 'execution_id', 'label'),
      execute: async args => {
        shell.activateById(PANEL_ID);
        await show(panel, model.api, args).catch(report);
      }
    });
    commands.addCommand(CommandIDs.refresh, {
      label: trans.__('Refresh Agent Activity'),
      icon: refreshIcon,
      describedBy: takes(),
      execute: async () => {
        await Promise.all([model.refresh(), search.refresh()]);
      }
    });
    addTextCommand(app, model.api, trans);
    const { api } = model;
    const search = new SearchModel(model);
    const execute = commands.execute.bind(commands);
    const now = () => Date.now() + api.clockOffset;
    const specs = () => serviceManager.kernelspecs.specs;
    const options = {
      api,
      clock: new Clock(now),
      editors,
      execute,
      model,
      rendermime,
      specs,
      trans
    };
    const panel = new ActivityPanel({
      ...options,
      approvals: { ...options, approvals, rendermime: untrusted(rendermime) },
      commands,
      languageOf: name => {
        const known = specs();
        const spec = known?.kernelspecs[name ?? known.default];
        return spec?.language.toLowerCase() ?? '';
      },
      openMenu: menuOpener(commands),
      search,
      translator: translator ?? nullTranslator,
      onError: report
    });
    const waiting = { ...options, approvals, now };
    panel.header.addWidget(new WaitingList(waiting));
    // Tab stops at the first, and arrow keys lead on.
    panel.toolbar.insertItem(0, 'pause', new PauseButton(waiting));
    const lookAgain = () => {
      if (model.isActive) {
        void model.refresh();
      }
    };
    // To say at once that the server is away, and to catch up when it is back.
    serviceManager.connectionFailure.connect(lookAgain);
    approvals.reconnected.connect(lookAgain);
    restorer?.add(panel, PANEL_ID);
    shell.add(panel, 'right', { rank: RANK });
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.openPanel, category });
    palette?.addItem({ command: CommandIDs.refresh, category });
  }
};
