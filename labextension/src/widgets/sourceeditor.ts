/** A source in an editor of JupyterLab's, with all that could hide in it made visible. */
import { Prec, StateField } from '@codemirror/state';
import type { Extension, Range } from '@codemirror/state';
import { Decoration, EditorView, WidgetType } from '@codemirror/view';
import type { DecorationSet } from '@codemirror/view';
import { CodeEditor, CodeEditorWrapper } from '@jupyterlab/codeeditor';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';
import { diffLines } from '../model/textdiff';
import { readSource, splitLines } from '../model/plainsource';
import type { Lookalikes } from '../model/plainsource';
import { element } from './elements';
import {
  comparisonText,
  createChange,
  createMark,
  createPiece,
  summaryText
} from './plainsource';

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
    const { before, factory, source, trans } = _options;
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
    if (before !== null) {
      const text = comparisonText(before, source, trans);
      this._changes.textContent = text;
    }
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
    this._summary.replaceChildren(element('span', '', text), this._changes);
  }

  /** The text with the line ends that the source has, if that is shown. */
  private _asRead(text = this._text): string {
    const { source } = this._options;
    return text === plainEnds(source) ? source : text;
  }

  private _createExtensions(): Extension[] {
    const { trans } = this._options;
    const marks = StateField.define<DecorationSet>({
      create: ({ doc }) => this._mark(doc.toString()),
      update: (set, { docChanged, newDoc }) =>
        docChanged ? this._mark(newDoc.toString()) : set,
      provide: field => EditorView.decorations.from(field)
    });
    return [
      Prec.highest(marks), // JupyterLab marks some of it with a dot
      EditorView.contentAttributes.of({ 'aria-label': trans.__('Source') })
    ];
  }

  private _mark(text: string): DecorationSet {
    const source = this._asRead(text);
    return Decoration.set(
      [
        ...markHidden(text, source, this._options),
        ...markChanges(text, source, this._options)
      ],
      true
    );
  }

  private readonly _changes = element('span', '');
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
    lookalikes: Lookalikes;
    trans: TranslationBundle;
  }
}

/** A text with the line ends that an editor has. */
function plainEnds(source: string): string {
  return source.replace(/\r\n?/g, '\n');
}

/** An element in the text of an editor. */
class Mark extends WidgetType {
  constructor(
    private readonly _key: string,
    private readonly _create: () => HTMLElement
  ) {
    super();
  }

  override eq(other: Mark): boolean {
    return other._key === this._key;
  }

  toDOM(): HTMLElement {
    return this._create();
  }
}

/** Each line as Python sees it, with its place in the editor's text. */
function* placed(lines: readonly string[]): Generator<[number, number]> {
  let at = 0;
  for (const line of lines) {
    yield [at, at + line.length];
    at += line.length + (HIDDEN_END.test(line) ? 0 : 1);
  }
}

/** Mark characters that hide or turn, and lines that are not code. */
function* markHidden(
  text: string,
  source: string,
  { lookalikes, trans }: SourceEditor.IOptions
): Generator<Range<Decoration>> {
  const places = [...placed(splitLines(source))];
  const read = readSource(source, lookalikes);
  for (const [index, { mark, pieces }] of read.entries()) {
    let [at] = places[index];
    for (const piece of pieces) {
      const from = at;
      at += piece.text.length;
      if (piece.kind === 'turned') {
        const isolated = { class: 'jp-AgentExecPlain-turned' };
        yield Decoration.mark(isolated).range(from, at);
      } else if (piece.kind === 'hidden') {
        const key = `${piece.code} ${piece.why} ${piece.like ?? ''}`;
        const widget = new Mark(key, () => createPiece(piece, trans));
        // A carriage return alone ends a line in an editor.
        yield text[from] === '\n'
          ? Decoration.widget({ widget, side: 1 }).range(from)
          : Decoration.replace({ widget }).range(from, at);
      }
    }
    if (mark) {
      const widget = new Mark(mark, () => createMark(mark, trans));
      const end = text[at - 1] === '\n' ? at - 1 : at;
      yield Decoration.widget({ widget, side: 2 }).range(end);
    }
  }
}

/** Mark lines that are new, and show those that are gone. */
function* markChanges(
  text: string,
  source: string,
  { before, lookalikes, trans }: SourceEditor.IOptions
): Generator<Range<Decoration>> {
  if (before === null) {
    return;
  }
  const lines = splitLines(source);
  const places = [...placed(lines)];
  const added = Decoration.line({ attributes: { 'data-change': 'added' } });
  const word = new Mark('added', () =>
    element('span', 'jp-AgentExec-visuallyHidden', trans.__('Added:'))
  );
  let index = 0;
  let last = -1;
  let gone = 0;
  for (const change of diffLines(splitLines(before), lines)) {
    const at = places[index]?.[0] ?? text.length;
    const start = text.lastIndexOf('\n', at - 1) + 1;
    if (change.kind === 'removed') {
      const key = `removed ${gone} ${change.text}`;
      const widget = new Mark(key, () =>
        createChange(change, lookalikes, trans)
      );
      const atEnd = index >= lines.length;
      yield Decoration.widget({
        widget,
        block: true,
        side: atEnd ? 1 + gone : -1000 + gone
      }).range(atEnd ? text.length : start);
      gone += 1;
      continue;
    }
    if (change.kind === 'added' && start !== last) {
      yield added.range(start);
      yield Decoration.widget({ widget: word, side: -1 }).range(start);
      last = start;
    }
    index += 1;
  }
}
