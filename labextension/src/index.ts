/** The plugins of this extension, and what other extensions may use of it. */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { attachedPlugin } from './plugins/attached';
import { badgesPlugin } from './plugins/badges';
import { documentsPlugin } from './plugins/documents';
import { interruptPlugin } from './plugins/interrupt';
import { locatePlugin } from './plugins/locate';
import { modelPlugin } from './plugins/model';
import { notebookPlugin } from './plugins/notebook';
import { outputsPlugin } from './plugins/outputs';
import { panelPlugin } from './plugins/panel';
import { textPlugin } from './plugins/text';
import { toolbarPlugin } from './plugins/toolbar';

export * from './tokens';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  modelPlugin,
  panelPlugin,
  interruptPlugin,
  notebookPlugin,
  textPlugin,
  attachedPlugin,
  badgesPlugin,
  toolbarPlugin,
  outputsPlugin,
  locatePlugin,
  documentsPlugin
];

export default plugins;
