/** What a session's notebook is called, in the drive of sessions and as a file. */
import type { IAgentSession } from '../wire';

/** The drive, with whose name the paths of its notebooks begin. */
export const DRIVE = 'AgentSession';

/** As many characters of a title as a file name may well have. */
const LONGEST_NAME = 80;

/** A title as a part of a file's name that is safe on any file system. */
function titleInName(title: string): string {
  return title
    .replace(/[\p{Cc}\p{Cf}/\\:*?"<>|]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, LONGEST_NAME)
    .trim();
}

/**
 * A file name for a session, without extension.
 *
 * It begins with what it is: the title is the agent's own words, and may be
 * shown as the title of the page.
 */
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

/** The path of a session's notebook. */
export function pathOf(session: IAgentSession): string {
  return `${DRIVE}:${session.id}/${notebookName(session)}.ipynb`;
}

/** The session whose notebook has a path; null if it is a user's. */
export function sessionIn(path: string): string | null {
  const [drive, local] = path.split(':', 2);
  return drive === DRIVE ? local.split('/')[0] : null;
}
