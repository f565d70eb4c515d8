/** Adds the panel "Agent activity". */
import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon, searchIcon } from '@jupyterlab/ui-components';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';
import { GalleryModel } from '../model/gallery';
import { SearchModel } from '../model/search';
import {
  CommandIDs,
  IActivityModel,
  IApprovalsModel,
  TRANSLATION_DOMAIN
} from '../tokens';
import type { IAgentExecApi } from '../tokens';
import { copyingPart } from '../widgets/copying';
import { createHighlight } from '../widgets/highlight';
import { activityIcon } from '../widgets/icons';
import { menuOpener } from '../widgets/menu';
import { ActivityPanel, PANEL_ID } from '../widgets/panel';
import { CellReview, SessionReview } from '../widgets/reviewparts';
import type { IReviewOptions } from '../widgets/reviewparts';
import { sandboxPart } from '../widgets/sandbox';
import { StopButton } from '../widgets/stopbutton';
import { approvalParts } from './approvalparts';
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

/** What can be looked for. */
function searchArgs(trans: TranslationBundle): ReadonlyJSONObject {
  return {
    type: 'object',
    properties: {
      query: {
        type: 'string',
        description: trans.__('Words in source, output or error')
      }
    }
  };
}

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

/** The sidebar panel, and the commands that open and refresh it. */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:panel',
  description:
    'Adds a sidebar panel that shows what agents run, as it happens.',
  autoStart: true,
  requires: [IActivityModel, IRenderMimeRegistry, IEditorLanguageRegistry],
  optional: [
    ILayoutRestorer,
    ITranslator,
    ICommandPalette,
    IApprovalsModel,
    ISettingRegistry
  ],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    rendermime: IRenderMimeRegistry,
    languages: IEditorLanguageRegistry,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    approvals: IApprovalsModel | null,
    registry: ISettingRegistry | null
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
        await show(panel, model.api, args).catch(report);
      }
    });
    commands.addCommand(CommandIDs.refresh, {
      label: trans.__('Refresh Agent Activity'),
      caption: trans.__('Ask the server again for all that is shown'),
      icon: refreshIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        gallery.refresh();
        await Promise.all([model.refresh(), search.refresh()]);
      }
    });
    commands.addCommand(CommandIDs.search, {
      label: trans.__('Search Agent Activity'),
      caption: trans.__('Search all that agents have run on this server'),
      icon: searchIcon,
      describedBy: { args: searchArgs(trans) },
      execute: ({ query }) => {
        shell.activateById(PANEL_ID);
        if (typeof query === 'string') {
          search.criteria = { ...search.criteria, q: query };
        }
        panel.focusSearch();
      }
    });
    let settings: ISettingRegistry.ISettings | null = null;
    // Without settings that can be read, all is as it is by default.
    void registry?.load(panelPlugin.id).then(
      loaded => {
        settings = loaded;
      },
      () => undefined
    );
    const search = new SearchModel(model);
    const gallery = new GalleryModel(model, search);
    const execute = commands.execute.bind(commands);
    const asking = approvals && approvalParts(approvals, model, trans, execute);
    const reviewing: IReviewOptions = {
      api: model.api,
      trans,
      execute,
      drafts: new Map(),
      onError: report
    };
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
      highlight: createHighlight(
        languages,
        () => serviceManager.kernelspecs.specs,
        trans
      ),
      parts: {
        session: [
          ...(asking?.session ?? []),
          session => new SessionReview(session, reviewing)
        ],
        actions: [
          copyingPart(menuOpener(commands), trans),
          cell => new StopButton(cell, trans, execute)
        ],
        above: [...(asking?.above ?? [])],
        below: [sandboxPart(reviewing), cell => new CellReview(cell, reviewing)]
      },
      areChangesOpen: () => settings?.composite.openChanges === true,
      onError: report
    });
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
    palette?.addItem({ command: CommandIDs.search, category });
  }
};
