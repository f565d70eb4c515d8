/** The plugins of this extension, and what other extensions may use of it. */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { interruptPlugin } from './plugins/interrupt';
import { modelPlugin } from './plugins/model';
import { notebookPlugin } from './plugins/notebook';
import { panelPlugin } from './plugins/panel';
import { textPlugin } from './plugins/text';

export * from './tokens';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  modelPlugin,
  panelPlugin,
  interruptPlugin,
  notebookPlugin,
  textPlugin
];

export default plugins;
