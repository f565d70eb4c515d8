/** The name under which a session is kept as a notebook. */
import type { IAgentSession } from '../wire';

/** As many characters of a title as a file name may well have. */
const LONGEST_NAME = 80;

/** A title as a part of a file's name that is safe on any file system. */
export function titleInName(title: string): string {
  return title
    .replace(/[\p{Cc}\p{Cf}/\\:*?"<>|]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, LONGEST_NAME)
    .trim();
}

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
