import { Heights } from '../../widgets/heights';

function heights(count: number): Heights {
  const it = new Heights();
  it.count = count;
  return it;
}

describe('Heights', () => {
  it('takes rows for equal before any has been measured', () => {
    const it = heights(10_000);
    expect(it.total).toBe(10_000 * it.estimate);
    expect(it.top(1)).toBe(0);
    expect(it.top(5001)).toBe(5000 * it.estimate);
    expect(it.at(5000 * it.estimate)).toBe(5001);
    expect(it.at(5000 * it.estimate - 1)).toBe(5000);
  });

  it('knows where rows stand by those before them', () => {
    const it = heights(3);
    it.measure(1, 50);
    it.measure(2, 70);
    expect(it.top(2)).toBe(50);
    expect(it.between(2, 3)).toBe(70);
    expect(it.total).toBe(120 + it.estimate);
    it.count = 50;
    expect(it.of(2)).toBe(70);
    expect(it.total).toBe(120 + 48 * it.estimate);
  });

  it('has the nearest row for what is above or below all', () => {
    const it = heights(3);
    expect(it.at(-10)).toBe(1);
    expect(it.at(1e9)).toBe(3);
    expect(heights(0).at(0)).toBe(0);
  });

  it('passes over rows without any height', () => {
    const it = heights(3);
    it.measure(1, 10);
    it.measure(2, 0);
    expect(it.at(10)).toBe(3);
  });

  it('takes the others for the mean of those first measured, once', () => {
    const it = heights(100);
    it.settle();
    const before = it.estimate;
    it.measure(1, 0);
    it.measure(98, 100);
    it.measure(99, 200);
    it.settle();
    expect(it.estimate).toBe(150);
    expect(it.estimate).not.toBe(before);
    it.measure(100, 1000);
    it.settle();
    expect(it.estimate).toBe(150);
  });
});
