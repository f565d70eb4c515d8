import type * as nbformat from '@jupyterlab/nbformat';
import { abridge } from '../../model/abridge';
import { stdout } from '../fakes';

const limits = { endLines: 2, endLength: 40, richLength: 50 };
const marker = (lines: number, length: number) => `<${lines}, ${length}>`;
const cut = (output: nbformat.IOutput) => abridge(output, marker, limits);

function numbered(count: number): string {
  return Array.from({ length: count }, (_, index) => `${index}\n`).join('');
}

function bundle(data: nbformat.IMimeBundle): nbformat.IOutput {
  return { output_type: 'display_data', data, metadata: {} };
}

describe('abridge', () => {
  it('leaves a short text as it is', () => {
    const output = stdout(numbered(5));
    expect(cut(output)).toEqual({ output, hiddenLines: 0, hiddenLength: 0 });
  });

  it('keeps both ends of many lines and says what is hidden', () => {
    const { output, hiddenLines, hiddenLength } = cut(stdout(numbered(9)));
    expect(output.text).toBe('0\n1\n<5, 10>\n7\n8\n');
    expect(hiddenLines).toBe(5);
    expect(hiddenLength).toBe(10);
  });

  it('keeps both ends of many lines without a last line end', () => {
    const { output } = cut(stdout(numbered(9).trimEnd()));
    expect(output.text).toBe('0\n1\n<5, 10>\n7\n8');
  });

  it('keeps both ends of one very long line', () => {
    const text = 'a'.repeat(60) + 'b'.repeat(60);
    const { output, hiddenLines, hiddenLength } = cut(stdout(text));
    expect(output.text).toBe(`${'a'.repeat(40)}\n<0, 40>\n${'b'.repeat(40)}`);
    expect(hiddenLines).toBe(0);
    expect(hiddenLength).toBe(40);
  });

  it('never cuts a character in two', () => {
    const { output } = cut(stdout(`x${'😀'.repeat(100)}y`));
    expect(output.text).not.toMatch(
      /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/
    );
  });

  it('takes text kept in lines', () => {
    const text = numbered(9).split(/(?<=\n)/);
    expect(cut({ ...stdout(''), text }).hiddenLines).toBe(5);
  });

  it('cuts a traceback and keeps it a list', () => {
    const traceback = numbered(9).trimEnd().split('\n');
    const { output } = cut({
      output_type: 'error',
      ename: 'E',
      evalue: '',
      traceback
    });
    expect(output.traceback).toEqual(['0', '1', '<5, 10>', '7', '8']);
    expect(cut({ output_type: 'error' }).hiddenLength).toBe(0);
  });

  it('shows the plain text in place of a large rich one', () => {
    const { output, hiddenLength, hiddenLines } = cut(
      bundle({ 'text/html': 'x'.repeat(51), 'text/plain': 'plain' })
    );
    expect(output.data).toEqual({ 'text/plain': 'plain' });
    expect(hiddenLength).toBe(51);
    expect(hiddenLines).toBe(0);
  });

  it('says so when there is no plain text', () => {
    const { output } = cut(
      bundle({ 'application/json': { a: 'x'.repeat(60) } })
    );
    expect(output.data).toEqual({ 'text/plain': '<0, 68>' });
  });

  it('cuts plain text and counts large markup kept in lines', () => {
    const { output, hiddenLength } = cut(
      bundle({ 'text/plain': numbered(9), 'image/svg+xml': ['x'.repeat(60)] })
    );
    expect(output.data).toEqual({ 'text/plain': '0\n1\n<5, 10>\n7\n8\n' });
    expect(hiddenLength).toBe(70);
  });

  it('always shows images and small representations', () => {
    const output = bundle({
      'image/png': 'x'.repeat(1000),
      'text/html': '<b>1</b>',
      'application/json': {}
    });
    expect(cut(output).output).toBe(output);
    expect(cut({ output_type: 'display_data' }).hiddenLength).toBe(0);
  });
});
