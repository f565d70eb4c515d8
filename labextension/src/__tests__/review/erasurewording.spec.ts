import { nullTranslator } from '@jupyterlab/translation';
import type { IErasure } from '../../tokens';
import { cannotErase, erasureLines } from '../../review/erasurewording';

const trans = nullTranslator.load('jupyter_agent_exec');

function erasure(is_open: boolean, ...payloads: number[]): IErasure {
  const sessions = payloads.map(count => ({
    is_open,
    executions: 1,
    payloads: count,
    bytes: 10 * count,
    facts: 0
  }));
  return { dry_run: true, sessions };
}

describe('erasureLines', () => {
  it('counts what goes, and says what remains', () => {
    const [goes, ...remains] = erasureLines(erasure(false, 2, 1), trans);
    expect(goes).toMatch(/^Erases 3 sources.*\(30 bytes\)\./);
    expect(remains).toEqual([expect.stringMatching(/^Copies remain/)]);
    expect(erasureLines(erasure(false, 1), trans)[0]).toMatch(
      /^Erases 1 source,/
    );
  });
});

describe('cannotErase', () => {
  it('is null where something goes', () => {
    expect(cannotErase(erasure(false, 1), trans)).toBeNull();
  });

  it('says why nothing goes', () => {
    expect(cannotErase(erasure(true, 1), trans)).toMatch(/open/);
    expect(cannotErase(erasure(false), trans)).toMatch(/nothing/);
    expect(cannotErase(erasure(false, 0), trans)).toMatch(/nothing/);
  });
});
