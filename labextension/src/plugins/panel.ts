/** Adds the panel "Agent activity". */
import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import { GalleryModel } from '../model/gallery';
import { SearchModel } from '../model/search';
import {
  CommandIDs,
  IActivityModel,
  IApprovalsModel,
  isFinal,
  isProposed,
  TRANSLATION_DOMAIN
} from '../tokens';
import type {
  Execute,
  IAgentExecApi,
  IExecutionModel,
  ISessionModel
} from '../tokens';
import type { ApprovalView } from '../widgets/approval';
import { ApprovalRecord } from '../widgets/approvalrecord';
import { ApprovalSlot } from '../widgets/approvalslot';
import { AskingList, PauseButton } from '../widgets/asking';
import { Clock } from '../widgets/clock';
import { copyingPart, StopButton } from '../widgets/cellactions';
import { SessionGrant } from '../widgets/grant';
import { hiddenOutputsPart } from '../widgets/hiddenoutputs';
import { createHighlight } from '../widgets/highlight';
import { activityIcon } from '../widgets/icons';
import { menuOpener } from '../widgets/menu';
import { ActivityPanel, PANEL_ID } from '../widgets/panel';
import { untrusted } from '../widgets/untrusted';
import { labelled, openDocument, reporter, takes } from './commands';

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

/** What the panel shows of approvals: in cells, sessions, and above all. */
function approvalParts(
  approvals: IApprovalsModel,
  model: IActivityModel,
  trans: TranslationBundle,
  execute: Execute,
  editors: Pick<ApprovalView.IOptions, 'editors' | 'rendermime' | 'specs'>
) {
  const { api } = model;
  const now = () => Date.now() + api.clockOffset;
  const clock = new Clock(now);
  const options = {
    ...editors,
    api,
    approvals,
    clock,
    execute,
    model,
    now,
    trans
  };
  return {
    above: [
      ({ execution }: IExecutionModel) =>
        isFinal(execution.status) || isProposed(execution)
          ? new Widget() // a proposal is decided in its notebook
          : new ApprovalSlot(execution.id, options),
      (cell: IExecutionModel) => new ApprovalRecord(cell, trans)
    ],
    session: [(session: ISessionModel) => new SessionGrant(session, options)],
    head: () => new AskingList(options),
    pause: () => new PauseButton(options)
  };
}

/** Add the command that opens an execution's whole text in the main area. */
function addTextCommand(
  app: JupyterFrontEnd,
  api: IAgentExecApi,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.openText, {
    label: trans.__('Open full output'),
    describedBy: takes('execution_id!'),
    execute: args => {
      const executionId = String(args.execution_id);
      const id = `jp-agent-exec-text-${executionId}`;
      return openDocument(app, id, trans.__('Full output'), async () => {
        const { TextViewer } = await import('../widgets/textviewer');
        return new TextViewer(api, executionId, trans);
      });
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
    IRenderMimeRegistry,
    IEditorLanguageRegistry,
    IEditorServices
  ],
  optional: [ILayoutRestorer, ITranslator, ICommandPalette, IApprovalsModel],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    rendermime: IRenderMimeRegistry,
    languages: IEditorLanguageRegistry,
    editors: IEditorServices,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    approvals: IApprovalsModel | null
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
        gallery.refresh();
        await Promise.all([model.refresh(), search.refresh()]);
      }
    });
    addTextCommand(app, model.api, trans);
    const search = new SearchModel(model);
    const gallery = new GalleryModel(model, search);
    const execute = commands.execute.bind(commands);
    const specs = () => serviceManager.kernelspecs.specs;
    const asking =
      approvals &&
      approvalParts(approvals, model, trans, execute, {
        editors,
        rendermime: untrusted(rendermime),
        specs
      });
    const panel = new ActivityPanel({
      model,
      search,
      gallery,
      commands,
      openMenu: menuOpener(commands),
      rendermime,
      trans,
      translator: translator ?? nullTranslator,
      execute,
      highlight: createHighlight(languages, specs, trans),
      parts: {
        session: asking?.session ?? [],
        actions: [
          copyingPart(menuOpener(commands), trans),
          cell => new StopButton(cell, trans, execute)
        ],
        above: asking?.above ?? [],
        below: [hiddenOutputsPart(trans)]
      },
      onError: report
    });
    const count = () => {
      panel.asking = approvals?.asking.length ?? 0;
    };
    approvals?.changed.connect(count);
    count();
    if (asking) {
      panel.header.addWidget(asking.head());
      // Tab stops at the first, and arrow keys lead on.
      panel.toolbar.insertItem(0, 'pause', asking.pause());
    }
    const lookAgain = () => {
      if (model.isActive) {
        void model.refresh();
      }
    };
    // To say at once that the server is away, and to catch up when it is back.
    serviceManager.connectionFailure.connect(lookAgain);
    approvals?.reconnected.connect(lookAgain);
    restorer?.add(panel, PANEL_ID);
    shell.add(panel, 'right', { rank: RANK });
    const category = trans.__('Agents');
    palette?.addItem({ command: CommandIDs.openPanel, category });
    palette?.addItem({ command: CommandIDs.refresh, category });
  }
};
