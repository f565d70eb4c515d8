import {
  ANYTHING,
  cellSearch,
  countFilters,
  looksForCells,
  sessionFilter
} from '../../model/criteria';
import type { ICriteria } from '../../model/criteria';

/** In the middle of a day, whatever the time zone. */
const NOW = new Date(2026, 10, 21, 12, 30);

function looking(given: Partial<ICriteria>): ICriteria {
  return { ...ANYTHING, ...given };
}

function local(year: number, month: number, day: number) {
  return new Date(year, month, day).toISOString();
}

describe('criteria', () => {
  it('ask for nothing when nothing is said', () => {
    expect(sessionFilter(ANYTHING, NOW)).toEqual({});
    expect(cellSearch(ANYTHING, NOW)).toEqual({});
    expect(looksForCells(ANYTHING)).toBe(false);
    expect(countFilters(ANYTHING)).toBe(0);
  });

  it('look for sessions until something of a cell is asked for', () => {
    expect(looksForCells(looking({ agent: 'a', unreviewed: true }))).toBe(
      false
    );
    expect(looksForCells(looking({ q: '  ' }))).toBe(false);
    for (const given of [
      { q: 'x' },
      { status: 'error' },
      { hasImage: true },
      { review: 'none' }
    ] as const) {
      expect(looksForCells(looking(given))).toBe(true);
    }
  });

  it('ask for sessions by all that sessions have', () => {
    const criteria = looking({
      q: 'not of sessions',
      agent: ' analyst ',
      target: 'notebook',
      sessionStatus: 'open',
      unreviewed: true
    });
    expect(sessionFilter(criteria, NOW)).toEqual({
      agent: 'analyst',
      target: 'notebook',
      status: 'open',
      unreviewed: true
    });
  });

  it('ask for cells by all that cells have', () => {
    const criteria = looking({
      q: ' mean ',
      agent: 'analyst',
      sessionStatus: 'open',
      unreviewed: true,
      status: 'error',
      hasImage: true,
      review: 'flagged'
    });
    expect(cellSearch(criteria, NOW)).toEqual({
      q: 'mean',
      agent: 'analyst',
      status: 'error',
      has_image: true,
      review: 'flagged'
    });
  });

  it('know the days of this computer, not of the server', () => {
    const when = (given: Partial<ICriteria>) =>
      sessionFilter(looking(given), NOW);
    expect(when({ when: 'today' })).toEqual({ since: local(2026, 10, 21) });
    expect(when({ when: 'week' })).toEqual({ since: local(2026, 10, 15) });
    expect(
      when({ when: 'days', from: '2026-01-31', until: '2026-02-01' })
    ).toEqual({
      since: local(2026, 0, 31),
      until: new Date(2026, 1, 1, 23, 59, 59, 999).toISOString()
    });
    expect(when({ when: 'days', until: '2026-02-01' })).toEqual({
      until: new Date(2026, 1, 1, 23, 59, 59, 999).toISOString()
    });
    expect(when({ when: 'days', from: '' })).toEqual({});
  });

  it('are counted as far as they count', () => {
    const given = looking({
      agent: 'a',
      target: 'kernel',
      when: 'week',
      sessionStatus: 'open',
      unreviewed: true
    });
    expect(countFilters(given)).toBe(5);
    expect(countFilters({ ...given, q: 'words' })).toBe(3);
    expect(countFilters({ ...given, hasImage: true, status: 'ok' })).toBe(5);
    expect(countFilters(looking({ when: 'days' }))).toBe(0);
  });
});
