/** The name under which a session is kept as a notebook. */
import { titleInName } from '../ui/sessionpaths';
import type { IAgentSession } from '../wire';

/** A file name for a session, without extension. */
export function notebookName(session: IAgentSession): string {
  const title = titleInName(session.title ?? '');
  return `Agent session ${title || session.id}`;
}

/** The name with a number that makes it free among those taken. */
export function freeName(name: string, taken: Iterable<string>): string {
  const names = new Set(Array.from(taken, each => each.toLowerCase()));
  let free = `${name}.ipynb`;
  for (let number = 2; names.has(free.toLowerCase()); number++) {
    free = `${name} (${number}).ipynb`;
  }
  return free;
}
