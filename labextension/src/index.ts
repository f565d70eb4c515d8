/** The plugins of this extension, and what other extensions may use of it. */
import { agentTokensPlugin } from './access/plugin';
import { approvalsPlugin } from './approvals/plugin';
import { atWorkPlugin } from './atwork/plugin';
import { documentsPlugin } from './tab/plugin';
import { insertPlugin } from './notebooks/insert';
import { modelPlugin } from './panel/modelplugin';
import { sessionsPlugin } from './session/plugin';
import { notebooksPlugin } from './notebooks/plugin';
import { notificationsPlugin } from './approvals/notifications';
import { panelPlugin } from './panel/plugin';

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
