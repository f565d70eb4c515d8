/** What the commands of this extension have in common. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';
import type { ILiveModel } from '../tokens';
import { errorText } from './wording';

/** A function that shows an error as a notification. */
export function reporter(trans: TranslationBundle): (error: unknown) => void {
  return error => {
    // A dialog that goes with the page rejects with nothing.
    if (error !== undefined) {
      Notification.error(errorText(error, trans), { autoClose: 8000 });
    }
  };
}

/** A function that gives the notebook in front, if one is. */
export function notebookInFront(
  { shell }: JupyterFrontEnd,
  notebooks: INotebookTracker | null
): () => NotebookPanel | null {
  return () => {
    const notebook = notebooks?.currentWidget ?? null;
    return notebook === shell.currentWidget ? notebook : null;
  };
}

/**
 * Bring a notebook to the front: the one that is open, whichever drive it came
 * from, else a new one. Null if it cannot be opened.
 */
export async function showNotebook(
  { commands, shell }: JupyterFrontEnd,
  notebooks: INotebookTracker,
  path: string
): Promise<NotebookPanel | null> {
  const open = notebooks.find(each => each.context.localPath === path);
  const panel: NotebookPanel | undefined =
    open ?? (await commands.execute('docmanager:open', { path }));
  if (panel) {
    shell.activateById(panel.id);
  }
  return panel ?? null;
}

/** The arguments that commands take, as JSON schemas; of strings, what they are. */
const ARGUMENTS = {
  cell_id: 'ID of a cell in the notebook',
  comment: {
    type: ['string', 'null'],
    description: 'null removes the comment. Default: it stays as it is.'
  },
  execution_id: 'ID of an execution',
  execution_ids: {
    type: 'array',
    items: { type: 'string' },
    description: 'IDs of executions. Default: those of the selected cells.'
  },
  label: { type: 'string', description: 'Label of the command in a menu' },
  path: 'Path of a notebook',
  reason: 'Reason that the agent can read',
  session_id:
    'ID of an agent session. Default: the one whose document is in front.',
  since: 'Moment from which on changes are undone. Default: your last edit.',
  source: 'Source to run, or to compare with, instead',
  source_sha256: 'SHA-256 hash of the source that the user has seen',
  verdict: {
    enum: ['approved', 'flagged', null],
    description: 'null removes the verdict. Default: it stays as it is.'
  }
} as const satisfies Record<string, string | ReadonlyJSONObject>;

type Argument = keyof typeof ARGUMENTS;

/** Describe the arguments that a command takes; `!` marks those it needs. */
export function takes(...args: (Argument | `${Argument}!`)[]): {
  args: ReadonlyJSONObject;
} {
  const names = args.map(each => each.replace('!', '') as Argument);
  const schemas = names.map(name => {
    const schema = ARGUMENTS[name];
    return typeof schema === 'string'
      ? [name, { type: 'string', description: schema }]
      : [name, schema];
  });
  return {
    args: {
      type: 'object',
      properties: Object.fromEntries(schemas) as ReadonlyJSONObject,
      required: names.filter((_, place) => args[place].endsWith('!'))
    }
  };
}

/** A command's name, unless its menu item has another. */
export function labelled(
  name: string
): (args: ReadonlyPartialJSONObject) => string {
  return ({ label }) => (typeof label === 'string' ? label : name);
}

/**
 * What commands about a session have in common: they report a failure, and are
 * disabled while there is no session.
 */
export function sessionCommand(
  live: ILiveModel,
  trans: TranslationBundle,
  act: (sessionId: string) => Promise<void>
): Pick<
  CommandRegistry.ICommandOptions,
  'describedBy' | 'isEnabled' | 'execute'
> {
  const report = reporter(trans);
  return {
    describedBy: takes('session_id', 'label'),
    isEnabled: ({ session_id = live.selected }) => session_id !== null,
    execute: async ({ session_id = live.selected }) => {
      const id = session_id as string | null;
      if (id !== null) {
        await act(id).catch(report);
      }
    }
  };
}
