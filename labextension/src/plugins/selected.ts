/** Commands that act on the chosen session, or on one that is named. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';
import type { IActivityModel, ISessionModel } from '../tokens';
import { reporter } from './report';

/** The arguments of such a command. */
export function sessionArgs(trans: TranslationBundle): ReadonlyJSONObject {
  return {
    type: 'object',
    properties: {
      session_id: {
        type: 'string',
        description: trans.__(
          'The id of an agent session; without it, the one chosen in the panel'
        )
      },
      label: {
        type: 'string',
        description: trans.__('What the command is called in a menu')
      }
    }
  };
}

/** A command's name, unless whoever offers it names it otherwise. */
export function labelled(
  name: string
): (args: ReadonlyPartialJSONObject) => string {
  return ({ label }) => (typeof label === 'string' ? label : name);
}

/** The session that a command is about; null if there is none. */
function sessionIdFrom(
  args: ReadonlyPartialJSONObject,
  model: IActivityModel
): string | null {
  return typeof args.session_id === 'string'
    ? args.session_id
    : (model.selected?.id ?? null);
}

/**
 * What is common to these commands: a failure is reported, and without a
 * session they cannot be given.
 */
export function sessionCommand(
  model: IActivityModel,
  trans: TranslationBundle
): (
  act: (sessionId: string) => Promise<void>,
  isEnabled?: () => boolean
) => Pick<CommandRegistry.ICommandOptions, 'isEnabled' | 'execute'> {
  const report = reporter(trans);
  return (act, isEnabled = () => model.selected !== null) => ({
    isEnabled: args => typeof args.session_id === 'string' || isEnabled(),
    execute: async args => {
      const id = sessionIdFrom(args, model);
      if (id !== null) {
        await act(id).catch(report);
      }
    }
  });
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
