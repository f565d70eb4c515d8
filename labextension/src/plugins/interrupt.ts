/** Lets a person stop what an agent runs. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { stopIcon } from '@jupyterlab/ui-components';
import {
  CommandIDs,
  IActivityModel,
  isFinal,
  TRANSLATION_DOMAIN
} from '../tokens';
import {
  labelled,
  sessionArgs,
  sessionCommand,
  watchSelected
} from './selected';

/** Whether an agent's code runs in the chosen session. */
function isRunning(model: IActivityModel): boolean {
  const selected = model.selected;
  return (
    selected?.session?.status === 'open' &&
    (selected.session.kernel?.execution_state === 'busy' ||
      selected.executions.some(({ execution }) => !isFinal(execution.status)))
  );
}

/** The command that interrupts a session's kernel. */
export const interruptPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agent-exec:interrupt',
  description: 'Adds a command that interrupts what an agent runs.',
  autoStart: true,
  requires: [IActivityModel],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IActivityModel,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const command = CommandIDs.interrupt;
    commands.addCommand(command, {
      ...sessionCommand(model, trans)(
        id => model.api.interrupt(id),
        () => isRunning(model)
      ),
      label: labelled(trans.__('Interrupt Agent')),
      caption: trans.__('Interrupt what runs in the chosen agent session'),
      icon: stopIcon,
      describedBy: { args: sessionArgs(trans) }
    });
    watchSelected(model, () => commands.notifyCommandChanged(command));
    palette?.addItem({ command, category: trans.__('Agents') });
  }
};
