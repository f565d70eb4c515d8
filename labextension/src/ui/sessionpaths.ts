/** Where sessions are among the documents: paths in a drive of their own. */
import type { IAgentSession } from '../wire';

/** The drive, with whose name the paths of its notebooks begin. */
export const DRIVE = 'AgentSession';

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

/** The path of a session's notebook. */
export function pathOf({ agent, id, title }: IAgentSession): string {
  const name = titleInName(title ?? '') || titleInName(agent.name) || id;
  return `${DRIVE}:${id}/${name}.ipynb`;
}

/** The session whose notebook has a path; null if it is a user's. */
export function sessionIn(path: string): string | null {
  const [drive, local] = path.split(':', 2);
  return drive === DRIVE ? local.split('/')[0] : null;
}
