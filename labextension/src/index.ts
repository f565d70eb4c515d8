/** The plugins of this extension, and what other extensions may use of it. */
import { agentTokensPlugin } from './plugins/agenttokens';
import { approvalsPlugin } from './plugins/approvals';
import { atWorkPlugin } from './plugins/atwork';
import { documentsPlugin } from './plugins/documents';
import { insertPlugin } from './plugins/insert';
import { modelPlugin } from './plugins/model';
import { notebooksPlugin } from './plugins/notebooks';
import { notificationsPlugin } from './plugins/notifications';
import { panelPlugin } from './panel/plugin';
import { sessionsPlugin } from './plugins/sessions';

export * from './tokens';

const plugins = [
  modelPlugin,
  panelPlugin,
  approvalsPlugin,
  atWorkPlugin,
  notificationsPlugin,
  notebooksPlugin,
  insertPlugin,
  sessionsPlugin,
  documentsPlugin,
  agentTokensPlugin
];

export default plugins;
