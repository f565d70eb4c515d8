/** A source in an editor of JupyterLab's, with all that could hide in it made visible. */
import { unifiedMergeView } from '@codemirror/merge';
import { Compartment, EditorState, Prec, StateField } from '@codemirror/state';
import type { Extension, Range } from '@codemirror/state';
import {
  Decoration,
  EditorView,
  ViewPlugin,
  WidgetType
} from '@codemirror/view';
import type { DecorationSet } from '@codemirror/view';
import { CodeEditor, CodeEditorWrapper } from '@jupyterlab/codeeditor';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';
import { readPieces, readSource, splitLines } from './sourcetext';
import type { IHiddenPiece, Lookalikes } from './sourcetext';
import { element } from './elements';
import { createPiece, showHidden, summaryText } from './plainsource';

/** An end of a line that Python sees, and an editor does not. */
// eslint-disable-next-line no-control-regex
const HIDDEN_END = /[\r\v\f\x1c-\x1e\x85\u2028\u2029]$/;

/**
 * Shows a source that can be read, and edited if it is let.
 *
 * An editor has one kind of line end only, so what is not edited is given back
 * as it was.
 */
export class SourceEditor extends Panel {
  constructor(private readonly _options: SourceEditor.IOptions) {
    super();
    const { factory, source } = _options;
    this.addClass('jp-AgentExecSourceEditor');
    const model = new CodeEditor.Model({ mimeType: _options.mimeType });
    model.sharedModel.setSource(_options.draft ?? plainEnds(source));
    this._wrapper = new CodeEditorWrapper({
      factory,
      model,
      editorOptions: {
        config: {
          lineNumbers: true,
          lineWrap: true,
          readOnly: _options.draft === undefined
        },
        extensions: this._createExtensions()
      }
    });
    this._isEditing = _options.draft !== undefined;
    this.addWidget(new Widget({ node: this._summary }));
    this.addWidget(this._wrapper);
    model.sharedModel.changed.connect(this._onChanged, this);
    this._renderSummary();
  }

  /** Emits when the text has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isEditing(): boolean {
    return this._isEditing;
  }

  /** What is shown; undefined if nobody has edited it. */
  get edited(): string | undefined {
    const text = this._text;
    return text === plainEnds(this._options.source) ? undefined : text;
  }

  set mimeType(value: string) {
    this._wrapper.model.mimeType = value;
  }

  /** Let a person edit the source. */
  edit(): void {
    this._setEditing(true);
    this._wrapper.editor.focus();
  }

  /** Show the source as it was again. */
  restore(): void {
    this._setEditing(false);
    this._wrapper.model.sharedModel.setSource(plainEnds(this._options.source));
  }

  /** Keep what is shown as it is while it is sent. */
  set busy(value: boolean) {
    this._wrapper.editor.setOption('readOnly', value || !this._isEditing);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      const { model } = this._wrapper;
      super.dispose();
      model.dispose();
    }
  }

  private get _text(): string {
    return this._wrapper.model.sharedModel.getSource();
  }

  private _setEditing(value: boolean): void {
    this._isEditing = value;
    this._wrapper.editor.setOption('readOnly', !value);
  }

  private _onChanged(): void {
    this._renderSummary();
    this._changed.emit();
  }

  private _renderSummary(): void {
    const { lookalikes, trans } = this._options;
    const text = summaryText(readSource(this._asRead(), lookalikes), trans);
    this._summary.textContent = text;
  }

  /** The text with the line ends that the source has, if that is shown. */
  private _asRead(text = this._text): string {
    const { source } = this._options;
    return text === plainEnds(source) ? source : text;
  }

  private _createExtensions(): Extension[] {
    const { before, trans } = this._options;
    const marks = StateField.define<DecorationSet>({
      create: ({ doc }) => this._mark(doc.toString()),
      update: (set, { docChanged, newDoc }) =>
        docChanged ? this._mark(newDoc.toString()) : set,
      provide: field => EditorView.decorations.from(field)
    });
    return [
      Prec.highest(marks), // JupyterLab marks some of it with a dot
      before === null ? [] : compare(before, this._options),
      EditorView.contentAttributes.of({ 'aria-label': trans.__('Source') })
    ];
  }

  private _mark(text: string): DecorationSet {
    const source = this._asRead(text);
    return Decoration.set([...markHidden(text, source, this._options)], true);
  }

  private _isEditing: boolean;
  private readonly _summary = element('div', 'jp-AgentExecPlain-summary');
  private readonly _wrapper: CodeEditorWrapper;
  private _changed = new Signal<this, void>(this);
}

/** The options of an editor. */
export namespace SourceEditor {
  /** What it is made of. */
  export interface IOptions {
    factory: CodeEditor.Factory;
    mimeType: string;
    source: string;
    /** What a person has made of it so far. */
    draft?: string;
    /** What it replaces. */
    before: string | null;
    /** Whether lines far from what is different are shown only when asked for. */
    fold?: boolean;
    lookalikes: Lookalikes;
    trans: TranslationBundle;
  }
}

/** A text with the line ends that an editor has. */
function plainEnds(source: string): string {
  return source.replace(/\r\n?/g, '\n');
}

/** What stands for a character that is not shown as it is. */
class Chip extends WidgetType {
  constructor(
    private readonly _piece: IHiddenPiece,
    private readonly _trans: TranslationBundle
  ) {
    super();
  }

  override eq({ _piece: { code, like } }: Chip): boolean {
    return code === this._piece.code && like === this._piece.like;
  }

  toDOM(): HTMLElement {
    return createPiece(this._piece, this._trans);
  }
}

/** Mark characters that hide or turn. */
function* markHidden(
  text: string,
  source: string,
  { lookalikes, trans }: SourceEditor.IOptions
): Generator<Range<Decoration>> {
  let at = 0;
  for (const line of splitLines(source)) {
    for (const piece of readPieces(line, lookalikes)) {
      const from = at;
      at += piece.text.length;
      if (piece.kind === 'turned') {
        const isolated = { class: 'jp-AgentExecPlain-turned' };
        yield Decoration.mark(isolated).range(from, at);
      } else if (piece.kind === 'hidden') {
        const widget = new Chip(piece, trans);
        // A carriage return alone ends a line in an editor.
        yield text[from] === '\n'
          ? Decoration.widget({ widget, side: 1 }).range(from)
          : Decoration.replace({ widget }).range(from, at);
      }
    }
    at += HIDDEN_END.test(line) ? 0 : 1;
  }
}

/** Show beside a text what it replaces, of which nothing can hide either. */
function compare(
  before: string,
  { fold = false, lookalikes, trans }: SourceEditor.IOptions
): Extension {
  const unfold = trans.__('Show unchanged lines');
  const complete = ({ dom }: EditorView) => {
    for (const line of dom.querySelectorAll('.cm-deletedLine:not([dir])')) {
      line.setAttribute('dir', 'ltr');
      showHidden(line, lookalikes, trans);
    }
    for (const folded of dom.querySelectorAll<HTMLElement>(
      '.cm-collapsedLines:not([tabindex])'
    )) {
      folded.tabIndex = 0;
      folded.title = unfold;
      folded.setAttribute('role', 'button');
      folded.addEventListener('keydown', event => {
        if (event.key === 'Enter') {
          event.preventDefault();
          folded.click();
        }
      });
    }
  };
  const onDrawn = (view: EditorView) =>
    void Promise.resolve().then(() => complete(view));
  const merge = new Compartment();
  const merged = () =>
    unifiedMergeView({
      original: plainEnds(before),
      collapseUnchanged: fold ? {} : undefined,
      gutter: false,
      mergeControls: false
    });
  let isColouring = false;
  // What is gone has the colours of the language as it was when it was drawn.
  const onLanguage = async (view: EditorView) => {
    isColouring = true;
    await Promise.resolve();
    for (const extension of [[], merged()]) {
      view.dispatch({ effects: merge.reconfigure(extension) });
    }
    isColouring = false;
  };
  return [
    merge.of(merged()),
    EditorState.phrases.of({
      '$ unchanged lines': trans.__('$ unchanged lines')
    }),
    ViewPlugin.define(view => {
      onDrawn(view);
      return {
        update: ({ transactions, view }) => {
          if (!isColouring && transactions.some(each => each.reconfigured)) {
            void onLanguage(view);
          }
          onDrawn(view);
        }
      };
    })
  ];
}
