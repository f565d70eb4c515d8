import type * as nbformat from '@jupyterlab/nbformat';
import { abridge } from '../../approvals/abridge';
import { stdout } from '../fakes';

const cut = (output: nbformat.IOutput) =>
  abridge(output, length => `<${length}>`);

function numbered(count: number): string {
  return Array.from({ length: count }, (_, index) => `${index}\n`).join('');
}

function bundle(data: nbformat.IMimeBundle): nbformat.IOutput {
  return { output_type: 'display_data', data, metadata: {} };
}

describe('abridge', () => {
  it('leaves a short text as it is', () => {
    const output = stdout(numbered(50));
    expect(cut(output).output).toBe(output);
    expect(cut(output).hidden).toBe(0);
  });

  it('keeps both ends of many lines and says what is hidden', () => {
    const text = numbered(100);
    const { output, hidden } = cut(stdout(text));
    const lines = String(output.text).split('\n');
    expect(lines.slice(18, 23)).toEqual([
      '18',
      '19',
      `<${hidden}>`,
      '80',
      '81'
    ]);
    expect(lines.slice(-2)).toEqual(['99', '']);
    expect(cut({ ...stdout(''), text: text.split(/(?<=\n)/) }).hidden).toBe(
      hidden
    );
  });

  it('keeps both ends of one very long line, and cuts no character', () => {
    const { output, hidden } = cut(stdout(`x${'😀'.repeat(5000)}y`));
    expect(hidden).toBe(2002);
    expect(output.text).toMatch(/^x.*\n<2002>\n.*y$/u);
    expect(output.text).not.toMatch(
      /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/
    );
  });

  it('cuts a traceback and keeps it a list', () => {
    const traceback = numbered(100).trimEnd().split('\n');
    const { output } = cut({
      output_type: 'error',
      ename: 'E',
      evalue: '',
      traceback
    });
    expect((output.traceback as string[])[0]).toBe('0');
    expect(output.traceback).toHaveLength(42);
    expect(cut({ output_type: 'error' }).hidden).toBe(0);
  });

  it('shows the plain text in place of a large rich one, or how large it is', () => {
    const html = 'x'.repeat(100_001);
    const rich = cut(bundle({ 'text/html': html, 'text/plain': 'plain' }));
    expect(rich.output.data).toEqual({ 'text/plain': 'plain' });
    expect(rich.hidden).toBe(100_001);
    const { output } = cut(bundle({ 'application/json': { a: html } }));
    expect(output.data).toEqual({ 'text/plain': '<100009>' });
  });

  it('always shows images and small representations', () => {
    const output = bundle({
      'image/png': 'x'.repeat(200_000),
      'text/html': '<b>1</b>',
      'application/json': {}
    });
    expect(cut(output).output).toBe(output);
    expect(cut({ output_type: 'display_data' }).hidden).toBe(0);
  });
});
