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
