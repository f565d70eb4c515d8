/** Lets a person undo what an agent changed in a notebook since their own last edit. */
import type { YNotebook } from '@jupyter/ydoc';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { undoIcon } from '@jupyterlab/ui-components';
import { METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { CommandIDs } from '../tokens';
import type { ILiveModel } from '../tokens';
import type { IRoundUndone } from '../wire';
import { confirm } from './confirm';
import { notebookInFront, reporter, takes } from '../ui/commands';
import { element } from '../ui/elements';
import { inOneLine } from '../ui/wording';

/** How long a notification stays that something was undone, or nothing. */
const STAY = 15_000;

/** What a transaction of a document tells of itself. */
interface ITransaction {
  local: boolean;
  origin: unknown;
}

/** When a person last edited each notebook in this page, by the page's clock. */
class OwnEdits {
  /** Follow a notebook from now on. */
  follow({ context }: NotebookPanel): void {
    void context.ready.then(() => {
      const { ydoc } = context.model.sharedModel as YNotebook;
      // What may be undone has an object as its origin; agents' changes have not.
      ydoc.on('afterTransaction', ({ local, origin }: ITransaction) => {
        if (local && typeof origin === 'object' && origin !== null) {
          this._at.set(ydoc, Date.now());
        }
      });
    });
  }

  /** When a person last edited it; null if that is not known. */
  last({ context }: NotebookPanel): number | null {
    const { ydoc } = context.model.sharedModel as YNotebook;
    return this._at.get(ydoc) ?? null;
  }

  private readonly _at = new WeakMap<object, number>();
}

/** The session of the active cell; else the one that was used last in a notebook. */
function sessionIn(
  { content, context, sessionContext }: NotebookPanel,
  live: ILiveModel
): string | null {
  const record = readCellRecord(
    content.activeCell?.model.getMetadata(METADATA_KEY)
  );
  const kernelId = sessionContext.session?.kernel?.id ?? null;
  const [last] = live
    .at(context.localPath, kernelId)
    .map(({ session }) => session)
    .sort((a, b) => b.last_activity_at.localeCompare(a.last_activity_at));
  return record?.session_id ?? last?.id ?? null;
}

/** What became of it, in sentences. */
export function roundText(
  what: 'undo' | 'redo',
  { changes, left, without_outputs }: IRoundUndone,
  trans: TranslationBundle
): string {
  const done =
    what === 'undo'
      ? trans._n('Undid %1 change.', 'Undid %1 changes.', changes)
      : trans._n('Made %1 change again.', 'Made %1 changes again.', changes);
  const parts = [
    changes > 0 ? done : trans.__('The agent’s changes stay as they are.'),
    left.length > 0 &&
      trans._n(
        '%1 cell stays as it is: %2',
        '%1 cells stay as they are: %2',
        left.length,
        Array.from(new Set(left.map(({ reason }) => inOneLine(reason)))).join(
          ' '
        )
      ),
    what === 'undo' &&
      without_outputs.length > 0 &&
      trans._n(
        '%1 cell has no outputs now: those from before the agent ran it are not recorded.',
        '%1 cells have no outputs now: those from before the agent ran them are not recorded.',
        without_outputs.length
      )
  ];
  return parts.filter(Boolean).join(' ');
}

/** Add the commands that undo a round in the notebook in front, and make it again. */
export function addRound(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  live: ILiveModel,
  palette: ICommandPalette | null,
  trans: TranslationBundle
): void {
  const { commands } = app;
  const front = notebookInFront(app, notebooks);
  const edits = new OwnEdits();
  notebooks.forEach(panel => edits.follow(panel));
  notebooks.widgetAdded.connect((_, panel) => edits.follow(panel));

  const change = async (
    what: 'undo' | 'redo',
    sessionId: string,
    since: string | null = null
  ) => {
    const told = await live.api.changeRound(what, sessionId, since);
    const again = {
      label: trans.__('Make again'),
      callback: () => void change('redo', sessionId).catch(reporter(trans))
    };
    if (told.changes === 0 && told.left.length === 0) {
      const none =
        what === 'redo'
          ? trans.__('Nothing was undone that could be made again.')
          : trans.__('The agent has changed nothing that could be undone.');
      Notification.info(none, { autoClose: STAY });
    } else {
      Notification.emit(
        roundText(what, told, trans),
        told.left.length > 0 ? 'warning' : 'success',
        {
          autoClose: STAY,
          actions: what === 'undo' && told.changes > 0 ? [again] : []
        }
      );
    }
  };
  const undo = async (sessionId: string) => {
    const panel = front();
    const last = panel && edits.last(panel);
    if (last !== null) {
      const at = new Date(last + live.api.clockOffset).toISOString();
      await change('undo', sessionId, at);
      return;
    }
    const text = trans.__(
      'You have not edited this notebook since you opened it. All that the agent has changed in it in this session will be undone.'
    );
    const title = trans.__('Undo');
    const content = [element('p', '', text)];
    if (await confirm(title, content, title, trans)) {
      await change('undo', sessionId);
    }
  };
  const add = (
    command: string,
    label: string,
    act: (sessionId: string, since: string | null) => Promise<void>
  ) => {
    commands.addCommand(command, {
      label,
      icon: undoIcon,
      describedBy: takes('session_id', 'since'),
      isEnabled: ({ session_id }) => Boolean(session_id ?? front()),
      execute: async ({ session_id, since }) => {
        const panel = front();
        const id = session_id ?? (panel && sessionIn(panel, live));
        if (typeof id === 'string') {
          const at = typeof since === 'string' ? since : null;
          await act(id, at).catch(reporter(trans));
        } else {
          const none = trans.__('No agent works in this notebook.');
          Notification.info(none, { autoClose: STAY });
        }
      }
    });
    palette?.addItem({ command, category: trans.__('Agents') });
  };
  add(
    CommandIDs.undoRound,
    trans.__('Undo the Agent’s Changes in the Notebook'),
    (id, since) => (since === null ? undo(id) : change('undo', id, since))
  );
  add(
    CommandIDs.redoRound,
    trans.__('Make the Agent’s Changes in the Notebook Again'),
    id => change('redo', id)
  );
}
