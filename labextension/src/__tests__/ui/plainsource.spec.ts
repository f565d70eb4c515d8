import { nullTranslator } from '@jupyterlab/translation';
import { showHidden } from '../../ui/plainsource';

const trans = nullTranslator.load('jupyter_agent_exec');

describe('showHidden', () => {
  function shown(html: string, lookalikes = {}): HTMLElement {
    const source = document.createElement('code');
    source.innerHTML = html;
    showHidden(source, lookalikes, trans);
    return source;
  }

  it('shows in a coloured source what turns it or cannot be seen', () => {
    const source = shown('x = <span class="s">"a\u202eb\u200b"</span>\ny');
    expect(source.textContent).toBe('x = "aU+202EbU+200B"\ny');
    expect(source.querySelectorAll('.s [role=img]')).toHaveLength(2);
  });

  it('shows the letters that the server says look like others', () => {
    const marked = { '\u0440assword': { '\u0440': 'p' } };
    const html = '<b>\u0440assword</b> # \u0440\u0443\u0441';
    const source = shown(html, marked);
    expect(source.textContent).toBe('U+0440assword # \u0440\u0443\u0441');
    const chip = source.querySelector('[role=img]');
    expect(chip?.getAttribute('aria-label')).toContain('“p”');
  });

  it('leaves a source in which nothing hides as it is', () => {
    const html = 'if <span>x</span>:\n\ty = "z"\n';
    expect(shown(html).innerHTML).toBe(html);
  });
});
