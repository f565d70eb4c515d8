/** What a person looks for, and what the server is asked for it. */
import type { ISearch, ISessionFilter } from '../api/client';
import type { IAgentSession, ITarget, Status, Verdict } from '../wire';

/** What a person looks for, as the form has it; empty for anything. */
export interface ICriteria {
  /** Words in source, output or error. */
  q: string;
  agent: string;
  target: ITarget['kind'] | '';
  /** With `days`, from one day until another. */
  when: '' | 'today' | 'week' | 'days';
  /** Days of this computer's calendar, as 2026-01-31. */
  from: string;
  until: string;
  /** Of sessions. */
  sessionStatus: IAgentSession['status'] | '';
  unreviewed: boolean;
  /** Of cells. */
  status: Status | '';
  hasImage: boolean;
  review: Verdict | 'none' | '';
}

/** Looks for nothing in particular. */
export const ANYTHING: ICriteria = {
  q: '',
  agent: '',
  target: '',
  when: '',
  from: '',
  until: '',
  sessionStatus: '',
  unreviewed: false,
  status: '',
  hasImage: false,
  review: ''
};

/** The statuses of cells, those that need a person first. */
export const STATUSES: readonly Status[] = [
  'awaiting_approval',
  'queued',
  'running',
  'awaiting_input',
  'ok',
  'error',
  'interrupted',
  'timed_out',
  'kernel_died',
  'cancelled',
  'rejected',
  'lost'
];

/** Whether cells are looked for, not sessions. */
export function looksForCells(criteria: ICriteria): boolean {
  const { hasImage, q, review, status } = criteria;
  return q.trim() !== '' || status !== '' || hasImage || review !== '';
}

/** How many of the form's fields say something, apart from the words. */
export function countFilters(criteria: ICriteria): number {
  const { agent, hasImage, review, sessionStatus, status, target } = criteria;
  const { since, until } = span(criteria, new Date());
  const cells = looksForCells(criteria);
  const said = [
    agent.trim(),
    target,
    since ?? until,
    !cells && sessionStatus,
    !cells && criteria.unreviewed,
    status,
    hasImage,
    review
  ];
  return said.filter(Boolean).length;
}

/** The sessions that are looked for. */
export function sessionFilter(criteria: ICriteria, now: Date): ISessionFilter {
  const { sessionStatus, unreviewed } = criteria;
  return {
    ...common(criteria, now),
    ...(sessionStatus && { status: sessionStatus }),
    ...(unreviewed && { unreviewed })
  };
}

/** The cells that are looked for. */
export function cellSearch(criteria: ICriteria, now: Date): ISearch {
  const { hasImage, review, status } = criteria;
  const q = criteria.q.trim();
  return {
    ...(q && { q }),
    ...common(criteria, now),
    ...(status && { status }),
    ...(hasImage && { has_image: true }),
    ...(review && { review })
  };
}

/** What sessions and cells can be looked for alike. */
function common(
  criteria: ICriteria,
  now: Date
): Pick<ISearch, 'agent' | 'target' | 'since' | 'until'> {
  const agent = criteria.agent.trim();
  const { target } = criteria;
  return {
    ...(agent && { agent }),
    ...(target && { target }),
    ...span(criteria, now)
  };
}

/** From when until when, for the server, whose days may be others. */
function span(
  { from, until, when }: ICriteria,
  now: Date
): { since?: string; until?: string } {
  switch (when) {
    case 'today':
      return { since: startOfDay(now, 0) };
    case 'week':
      return { since: startOfDay(now, -6) };
    case 'days': {
      const first = day(from);
      const last = day(until);
      return {
        ...(first && { since: startOfDay(first, 0) }),
        ...(last && { until: endOfDay(last) })
      };
    }
    default:
      return {};
  }
}

function day(text: string): Date | null {
  const date = new Date(`${text}T00:00:00`);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** When a day began that is so many after another. */
function startOfDay(date: Date, days: number): string {
  const start = new Date(date);
  start.setDate(start.getDate() + days);
  start.setHours(0, 0, 0, 0);
  return start.toISOString();
}

function endOfDay(date: Date): string {
  const end = new Date(date);
  end.setHours(23, 59, 59, 999);
  return end.toISOString();
}
