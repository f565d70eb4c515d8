/** The plugins of this extension, and what other extensions may use of it. */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { agentTokensPlugin } from './plugins/agenttokens';
import { approvalsPlugin } from './plugins/approvals';
import { askingPlugin } from './plugins/asking';
import { atWorkPlugin } from './plugins/atwork';
import { attachedPlugin } from './plugins/attached';
import { badgesPlugin } from './plugins/badges';
import { cellsPlugin } from './plugins/cells';
import { decidingPlugin } from './plugins/deciding';
import { documentsPlugin } from './plugins/documents';
import { insertPlugin } from './plugins/insert';
import { interruptPlugin } from './plugins/interrupt';
import { linksPlugin } from './plugins/links';
import { locatePlugin } from './plugins/locate';
import { modelPlugin } from './plugins/model';
import { notebookPlugin } from './plugins/notebook';
import { notificationsPlugin } from './plugins/notifications';
import { outputsPlugin } from './plugins/outputs';
import { panelPlugin } from './plugins/panel';
import { reviewPlugin } from './plugins/review';
import { sessionDocumentPlugin } from './plugins/sessiondocument';
import { statusPlugin } from './plugins/status';
import { textPlugin } from './plugins/text';
import { toolbarPlugin } from './plugins/toolbar';
import { unlockPlugin } from './plugins/unlock';

export * from './tokens';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  modelPlugin,
  panelPlugin,
  interruptPlugin,
  notebookPlugin,
  sessionDocumentPlugin,
  insertPlugin,
  textPlugin,
  approvalsPlugin,
  decidingPlugin,
  askingPlugin,
  atWorkPlugin,
  statusPlugin,
  notificationsPlugin,
  attachedPlugin,
  badgesPlugin,
  toolbarPlugin,
  outputsPlugin,
  cellsPlugin,
  reviewPlugin,
  locatePlugin,
  linksPlugin,
  documentsPlugin,
  agentTokensPlugin,
  unlockPlugin
];

export default plugins;
