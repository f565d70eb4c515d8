/** Colours for source code that is only read. */
import { jupyterHighlightStyle } from '@jupyterlab/codemirror';
import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import type { KernelSpec } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Lookalikes } from '../model/plainsource';
import { showHidden } from './plainsource';

/** Fills `host` with a source, coloured for the language of a kernel. */
export type Highlight = (
  source: string,
  lookalikes: Lookalikes,
  kernelName: string | null,
  host: HTMLElement
) => Promise<void>;

/** Characters above which a source is not coloured. */
const LONGEST = 100_000;

/** The style element that holds the highlighter's classes. */
const STYLE_ID = 'jp-agent-exec-highlight';

/** Put the highlighter's classes on the page; an editor may not be there. */
function mountStyle(): void {
  const rules = jupyterHighlightStyle.module?.getRules();
  if (rules && !document.getElementById(STYLE_ID)) {
    const style = document.createElement('style');
    style.id = STYLE_ID;
    style.textContent = rules;
    document.head.appendChild(style);
  }
}

/** A highlighter that uses JupyterLab's own languages. */
export function createHighlight(
  languages: IEditorLanguageRegistry,
  specs: () => KernelSpec.ISpecModels | null,
  trans: TranslationBundle
): Highlight {
  const languageOf = (kernelName: string | null) => {
    const known = specs();
    const name = known?.kernelspecs[kernelName ?? known.default]?.language;
    return name ? languages.findBest(name.toLowerCase()) : null;
  };
  return async (source, lookalikes, kernelName, host) => {
    mountStyle();
    const language = source.length > LONGEST ? null : languageOf(kernelName);
    const coloured = document.createElement('code');
    try {
      await languages.highlight(source, language, coloured);
    } catch {
      // A language that does not load or parse is no reason to hide the code.
      coloured.textContent = source;
    }
    showHidden(coloured, lookalikes, trans);
    host.replaceChildren(coloured);
  };
}
