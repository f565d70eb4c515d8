/** What the commands of this extension have in common. */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';
import type { IActivityModel, ISessionModel } from '../tokens';
import { describeError } from '../widgets/wording';

/** A function that shows an error as a notification. */
export function reporter(trans: TranslationBundle): (error: unknown) => void {
  return error => {
    const { title, hint } = describeError(error, trans);
    Notification.error(`${title}. ${hint}`, { autoClose: 8000 });
  };
}

/**
 * Describe a command's arguments.
 *
 * @param properties - Their schemas; of one that is a string, its description.
 * @param required - The names of those that must be given.
 */
export function describedBy(
  properties: Readonly<Record<string, string | ReadonlyJSONObject>> = {},
  required: string[] = []
): { args: ReadonlyJSONObject } {
  const schemas = Object.entries(properties).map(([name, schema]) => [
    name,
    typeof schema === 'string'
      ? { type: 'string', description: schema }
      : schema
  ]);
  return {
    args: {
      type: 'object',
      properties: Object.fromEntries(schemas) as ReadonlyJSONObject,
      required
    }
  };
}

/** The arguments of a command about a session, with their descriptions. */
export function sessionArgs(trans: TranslationBundle): {
  session_id: string;
  label: string;
} {
  return {
    session_id: trans.__(
      'The ID of an agent session. Default: the session selected in the panel.'
    ),
    label: trans.__('The label of the command in a menu')
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
  model: IActivityModel,
  trans: TranslationBundle,
  act: (sessionId: string) => Promise<void>,
  isEnabled: () => boolean = () => model.selected !== null
): Pick<
  CommandRegistry.ICommandOptions,
  'describedBy' | 'isEnabled' | 'execute'
> {
  const report = reporter(trans);
  return {
    describedBy: describedBy(sessionArgs(trans)),
    isEnabled: ({ session_id }) =>
      typeof session_id === 'string' || isEnabled(),
    execute: async ({ session_id }) => {
      const id =
        typeof session_id === 'string' ? session_id : model.selected?.id;
      if (id !== undefined) {
        await act(id).catch(report);
      }
    }
  };
}

/** Call back when the chosen session, or what is known of it, changes. */
export function watchSelected(
  model: IActivityModel,
  changed: () => void
): void {
  const watched = new WeakSet<ISessionModel>();
  const watch = () => {
    const { selected } = model;
    if (selected && !watched.has(selected)) {
      watched.add(selected);
      // It drops its connections itself when it is disposed.
      selected.changed.connect(changed, selected);
    }
    changed();
  };
  model.selectedChanged.connect(watch, model);
  watch();
}
