/** Editors for tests. */
import type { YCodeCell } from '@jupyter/ydoc';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import {
  CodeMirrorEditorFactory,
  CodeMirrorMimeTypeService,
  EditorExtensionRegistry,
  EditorLanguageRegistry,
  ybinding
} from '@jupyterlab/codemirror';

/** What is watched and not in view yet; by itself, all is in view at once. */
export class Sight {
  static hides = false;
  private static readonly _all = new Set<Sight>();

  constructor(private readonly _onSight: IntersectionObserverCallback) {}

  /** Bring all that is watched into view. */
  static show(): void {
    Sight._all.forEach(each => each._tell());
  }

  observe(): void {
    Sight._all.add(this);
    if (!Sight.hides) {
      void Promise.resolve().then(() => this._tell());
    }
  }

  unobserve(): void {}

  disconnect(): void {
    Sight._all.delete(this);
  }

  private _tell(): void {
    const seen = { isIntersecting: true } as IntersectionObserverEntry;
    this._onSight([seen], this as unknown as IntersectionObserver);
  }
}

window.IntersectionObserver = Sight as unknown as typeof IntersectionObserver;
Element.prototype.scrollIntoView = () => undefined; // jsdom has no layout

/** JupyterLab's own editors. */
export function createEditors(): IEditorServices {
  const languages = new EditorLanguageRegistry();
  const extensions = new EditorExtensionRegistry();
  EditorExtensionRegistry.getDefaultExtensions().forEach(extension =>
    extensions.addExtension(extension)
  );
  extensions.addExtension({
    name: 'shared-model-binding',
    factory: ({ model }) => {
      const { ysource } = model.sharedModel as unknown as YCodeCell;
      return EditorExtensionRegistry.createImmutableExtension(
        ybinding({ ytext: ysource })
      );
    }
  });
  return {
    factoryService: new CodeMirrorEditorFactory({ extensions, languages }),
    mimeTypeService: new CodeMirrorMimeTypeService(languages)
  };
}
