import { applyOutputChange, joinText } from '../../api/outputs';
import { stdout } from '../fakes';

const image = { output_type: 'display_data', data: {}, metadata: {} };

describe('applyOutputChange', () => {
  const outputs = [stdout('a'), image];

  it('appends an output', () => {
    const next = applyOutputChange(outputs, { index: 2, output: stdout('b') });
    expect(next).toEqual([stdout('a'), image, stdout('b')]);
  });

  it('replaces an output and keeps the others as they are', () => {
    const next = applyOutputChange(outputs, { index: 0, output: stdout('b') });
    expect(next?.[0]).toEqual(stdout('b'));
    expect(next?.[1]).toBe(image);
  });

  it('appends text to a stream without changing what was given', () => {
    const lines = { ...stdout(''), text: ['a\n', 'b'] };
    const next = applyOutputChange([lines], { index: 0, append: 'c' });
    expect(next?.[0].text).toBe('a\nbc');
    expect(lines.text).toEqual(['a\n', 'b']);
  });

  it('drops outputs from an index on', () => {
    const change = { index: 1, truncate: true } as const;
    expect(applyOutputChange(outputs, change)).toEqual([stdout('a')]);
  });

  it.each([
    ['an index beyond the end', { index: 3, output: image }],
    ['an index before the start', { index: -1, output: image }],
    ['text for what is no stream', { index: 1, append: 'x' }],
    ['text for what is not there', { index: 2, append: 'x' }],
    ['no change at all', { index: 0 }]
  ])('does not fit: %s', (_, change) => {
    expect(applyOutputChange(outputs, change)).toBeNull();
  });
});

describe('joinText', () => {
  it('gives the text of a string, of lines and of nothing', () => {
    expect(joinText('a')).toBe('a');
    expect(joinText(['a\n', 'b'])).toBe('a\nb');
    expect(joinText(undefined)).toBe('');
  });
});
