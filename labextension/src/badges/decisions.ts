/** The commands that keep or discard agents' cells in notebooks, and undo that. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  checkIcon,
  deleteIcon,
  LabIcon,
  undoIcon
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { CommandIDs } from '../tokens';
import type { IActivityModel, IExecution, IExecutionList } from '../tokens';
import { plainName } from '../ui/wording';
import { reporter, takes, watchSelected } from '../ui/commands';

type Args = ReadonlyPartialJSONObject;

/** Milliseconds for which a notification is shown. */
const SHOWN = 8000;

/** What is decided about one cell, or about all of a session. */
interface IDecision {
  label: string;
  icon: LabIcon;
  /** The name where it is about a whole session. */
  labelForAll: string;
  one: (executionId: string) => Promise<IExecution>;
  all: (sessionId: string) => Promise<IExecutionList>;
  undo: (executionId: string) => Promise<IExecution>;
  /** What was done to a number of cells. */
  done: (cells: number) => string;
  /** Whether what was done to one cell is told: no badge tells it. */
  tells: boolean;
}

/** Adds the commands; what they do is told, with *Undo*. */
class Decisions {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _model: IActivityModel,
    private readonly _trans: TranslationBundle,
    private readonly _palette: ICommandPalette | null
  ) {}

  add(id: string, decision: IDecision): void {
    const { commands } = this._app;
    const trans = this._trans;
    const { icon, label, labelForAll } = decision;
    commands.addCommand(id, {
      label: ({ execution_id }) =>
        typeof execution_id === 'string' ? label : labelForAll,
      icon,
      describedBy: takes('session_id', 'execution_id', 'cell_id'),
      isEnabled: ({ execution_id, session_id }) =>
        typeof (execution_id ?? session_id) === 'string' ||
        this._model.selected?.session?.target.kind === 'notebook',
      execute: args => this._decide(decision, args).catch(reporter(trans))
    });
    watchSelected(this._model, () => commands.notifyCommandChanged(id));
    const category = trans.__('Agents');
    this._palette?.addItem({ command: id, category });
  }

  private async _decide(decision: IDecision, args: Args): Promise<void> {
    const { api, selected } = this._model;
    const { cell_id, execution_id, session_id = selected?.id } = args;
    if (typeof execution_id === 'string') {
      const { document } = await api.getExecution(execution_id);
      if (cell_id && document?.cell_id && document.cell_id !== cell_id) {
        Notification.warning(
          this._trans.__(
            'This cell is a copy. Keep or discard the original cell: %1',
            plainName(document.path)
          ),
          { autoClose: SHOWN }
        );
      } else if (decision.tells) {
        this._tell(decision, [await decision.one(execution_id)]);
      } else {
        await decision.one(execution_id); // its badge tells
      }
    } else if (typeof session_id === 'string') {
      this._tell(decision, (await decision.all(session_id)).executions);
    }
  }

  /** Tell what was done, and offer to undo it. */
  private _tell(
    { done, undo }: IDecision,
    executions: readonly IExecution[]
  ): void {
    const ids = executions.map(({ id }) => id);
    if (ids.length === 0) {
      const nothing = this._trans.__('There is nothing to decide');
      Notification.info(nothing, { autoClose: SHOWN });
      return;
    }
    const callback = () => void this._undo(ids, undo);
    // It stays for those who need time to reach it, until the next.
    Notification.dismiss(this._told);
    this._told = Notification.info(done(ids.length), {
      actions: [{ label: this._trans.__('Undo'), callback }],
      autoClose: false
    });
  }

  private async _undo(
    ids: readonly string[],
    undo: IDecision['undo']
  ): Promise<void> {
    const failures: unknown[] = [];
    for (const id of ids) {
      await undo(id).catch(error => failures.push(error));
    }
    if (failures.length > 0) {
      reporter(this._trans)(failures[0]);
    }
  }

  private _told = '';
}

/** Add the command that accepts an agent's outputs as they come, or not any more. */
function addAlwaysShow(
  commands: CommandRegistry,
  model: IActivityModel,
  trans: TranslationBundle
): void {
  const command = CommandIDs.alwaysShowOutputs;
  const shown = () => model.selected?.session?.show_outputs === true;
  const decide = async (sessionId: string, always: boolean) => {
    if (always) {
      const { button } = await showDialog({
        title: trans.__('Always show outputs from this agent?'),
        body: trans.__(
          'Charts, widgets and JavaScript that the agent puts out in this session then run in your browser with your permissions. You can end this in the menu of the session.'
        ),
        buttons: [
          Dialog.cancelButton(),
          Dialog.warnButton({ label: trans.__('Always show') })
        ]
      });
      if (!button.accept) {
        return;
      }
    }
    await model.api.request('POST', ['sessions', sessionId, 'accept'], {
      always
    });
  };
  commands.addCommand(command, {
    label: trans.__('Always Show Outputs From This Agent'),
    describedBy: takes('session_id', 'always'),
    isToggled: shown,
    isEnabled: ({ session_id }) =>
      typeof session_id === 'string' ||
      (model.selected?.session?.target.kind === 'notebook' &&
        model.selected.session.status === 'open'),
    execute: async ({ always, session_id }) => {
      const id =
        typeof session_id === 'string' ? session_id : model.selected?.id;
      const wanted = typeof always === 'boolean' ? always : !shown();
      if (id !== undefined) {
        await decide(id, wanted).catch(reporter(trans));
      }
    }
  });
  watchSelected(model, () => commands.notifyCommandChanged(command));
}

/** Add the commands that keep and discard cells, and undo that. */
export function addDecisions(
  app: JupyterFrontEnd,
  model: IActivityModel,
  trans: TranslationBundle,
  palette: ICommandPalette | null
): void {
  const { api } = model;
  const cell = (id: string, ...what: string[]) =>
    api.request<IExecution>('POST', ['executions', id, ...what]);
  const all = (id: string, ...what: string[]) =>
    api.request<IExecutionList>('POST', ['sessions', id, ...what]);
  addAlwaysShow(app.commands, model, trans);
  const decisions = new Decisions(app, model, trans, palette);
  decisions.add(CommandIDs.keep, {
    label: trans.__('Keep'),
    icon: checkIcon,
    labelForAll: trans.__('Keep All Cells of This Agent Session'),
    one: id => cell(id, 'accept'),
    all: id => all(id, 'accept'),
    undo: id => cell(id, 'restore'),
    done: cells =>
      trans._n('Outputs of %1 cell shown', 'Outputs of %1 cells shown', cells),
    tells: false
  });
  decisions.add(CommandIDs.discard, {
    label: trans.__('Discard'),
    icon: deleteIcon,
    labelForAll: trans.__('Discard All Cells of This Agent Session'),
    one: id => cell(id, 'cell', 'discard'),
    all: id => all(id, 'cells', 'discard'),
    undo: id => cell(id, 'cell', 'restore'),
    done: cells => trans._n('%1 cell discarded', '%1 cells discarded', cells),
    tells: true
  });
  app.commands.addCommand(CommandIDs.undo, {
    label: trans.__('Undo'),
    icon: undoIcon,
    describedBy: takes('execution_id!'),
    execute: async ({ execution_id }) => {
      try {
        const id = String(execution_id);
        const { document } = await api.getExecution(id);
        await (document?.status === 'discarded'
          ? cell(id, 'cell', 'restore')
          : cell(id, 'restore'));
      } catch (error) {
        reporter(trans)(error);
      }
    }
  });
}
