/** A source in an editor of JupyterLab's, with all that could hide in it made visible. */
import { unifiedMergeView } from '@codemirror/merge';
import {
  Compartment,
  EditorState,
  Prec,
  StateEffect,
  StateField
} from '@codemirror/state';
import type { Extension, Range } from '@codemirror/state';
import {
  Decoration,
  EditorView,
  ViewPlugin,
  WidgetType
} from '@codemirror/view';
import type { DecorationSet } from '@codemirror/view';
import { CodeEditor, CodeEditorWrapper } from '@jupyterlab/codeeditor';
import type { CodeMirrorEditor } from '@jupyterlab/codemirror';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';
import { readPieces, readSource, splitLines } from './sourcetext';
import type { Lookalikes } from './sourcetext';
import { element, linkButton } from './elements';
import { createChip, showHidden, summaryText } from './plainsource';

/** An end of a line that Python sees, and an editor does not. */
// eslint-disable-next-line no-control-regex
const HIDDEN_END = /[\r\v\f\x1c-\x1e\x85\u2028\u2029]$/;

/** Blank lines that are shown as they are between others. */
const MOST_BLANK = 5;

/**
 * Shows a source that can be read, and edited if it is let.
 *
 * It begins with the first line that is not blank, and knows whether its end
 * has been in view. What differs from another source is a view of its own.
 *
 * An editor has one kind of line end only, so what is not edited is given back
 * as it was.
 */
export class SourceEditor extends Panel {
  constructor(private readonly _options: SourceEditor.IOptions) {
    super();
    const { factory, source } = _options;
    this.addClass('jp-AgentExecSourceEditor');
    const { before, showsDifference = false } = _options;
    this._isDifference = showsDifference && before !== null;
    this._isEditing = _options.draft !== undefined;
    const model = new CodeEditor.Model({ mimeType: _options.mimeType });
    model.sharedModel.setSource(_options.draft ?? plainEnds(source));
    this._wrapper = new CodeEditorWrapper({
      factory,
      model,
      editorOptions: {
        config: {
          lineNumbers: true,
          lineWrap: true,
          readOnly: !this._isEditing
        },
        extensions: this._createExtensions()
      }
    });
    this._toggle = linkButton('', () => this._toggleDifference());
    this._toggle.hidden = before === null;
    const head = new Widget({ node: element('div', 'jp-AgentExecPlain-head') });
    head.node.append(this._summary, this._toggle);
    this.addWidget(head);
    this.addWidget(this._wrapper);
    model.sharedModel.changed.connect(this._onChanged, this);
    this._renderHead();
  }

  /** Emits when the text has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether the end of the source has been in view. */
  get isSeen(): boolean {
    return this._isSeen;
  }

  /** Emits when the end of the source comes into view for the first time. */
  get seen(): ISignal<this, void> {
    return this._seen;
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

  /** Bring the end of the source into view, and the keyboard there. */
  showEnd(): void {
    const { length } = this._view.state.doc;
    this._view.focus();
    this._view.dispatch({
      selection: { anchor: length },
      scrollIntoView: true
    });
    this.node.scrollIntoView({ block: 'end' });
  }

  /** Mark lines that there are, and no others; bring the first into view if it is sought. */
  highlight(lines: readonly number[], isSought = false): void {
    if (this.isDisposed) {
      return;
    }
    const { doc } = this._view.state;
    const starts = lines.map(each => doc.line(each).from);
    const marks = starts.map(each => HIGHLIGHT.range(each));
    const sought = isSought ? [EditorView.scrollIntoView(starts[0])] : [];
    this._view.dispatch({
      effects: [setHighlight.of(Decoration.set(marks)), ...sought]
    });
  }

  /** Keep what is shown as it is while it is sent. */
  set busy(value: boolean) {
    this._wrapper.editor.setOption('readOnly', value || !this._isEditing);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      const { model } = this._wrapper;
      this._sight.disconnect();
      super.dispose();
      model.dispose();
    }
  }

  private get _view(): EditorView {
    return (this._wrapper.editor as CodeMirrorEditor).editor;
  }

  private get _text(): string {
    return this._wrapper.model.sharedModel.getSource();
  }

  private _setEditing(value: boolean): void {
    this._isEditing = value;
    this._wrapper.editor.setOption('readOnly', !value);
  }

  private _onChanged(): void {
    this._renderHead();
    this._changed.emit();
  }

  private _onSight(entries: readonly IntersectionObserverEntry[]): void {
    if (entries.some(({ isIntersecting }) => isIntersecting)) {
      this._sight.disconnect();
      this._isSeen = true;
      this._seen.emit();
    }
  }

  /** Show what differs from what it replaces, or the source alone. */
  private _toggleDifference(): void {
    this._isDifference = !this._isDifference;
    this._renderHead();
    this._view.dispatch({
      effects: this._difference.reconfigure(this._compared())
    });
  }

  private _renderHead(): void {
    const { lookalikes, trans } = this._options;
    const text = summaryText(readSource(this._asRead(), lookalikes), trans);
    this._summary.textContent = text;
    this._toggle.textContent = this._isDifference
      ? trans.__('Show the code')
      : trans.__('Show what differs');
  }

  /** The text with the line ends that the source has, if that is shown. */
  private _asRead(text = this._text): string {
    const { source } = this._options;
    return text === plainEnds(source) ? source : text;
  }

  private _compared(): Extension {
    const { before } = this._options;
    return this._isDifference && before !== null
      ? compare(before, this._options)
      : [];
  }

  private _createExtensions(): Extension[] {
    const { trans } = this._options;
    const marks = StateField.define<DecorationSet>({
      create: ({ doc }) => this._mark(doc.toString()),
      update: (set, { docChanged, newDoc, reconfigured }) =>
        docChanged || reconfigured ? this._mark(newDoc.toString()) : set,
      provide: field => EditorView.decorations.from(field)
    });
    return [
      highlighted,
      Prec.highest(marks), // JupyterLab marks some of it with a dot
      this._difference.of(this._compared()),
      EditorView.contentAttributes.of({ 'aria-label': trans.__('Source') })
    ];
  }

  private _mark(text: string): DecorationSet {
    const source = this._asRead(text);
    const isFolded = !this._isEditing && !this._isDifference;
    const end = new Mark('end', () => {
      const node = element('div', 'jp-AgentExecPlain-end');
      this._sight.observe(node);
      return node;
    });
    return Decoration.set(
      [
        ...markHidden(text, source, this._options),
        ...(isFolded ? foldBlank(source, this._options) : []),
        Decoration.widget({ widget: end, block: true, side: 1 }).range(
          text.length
        )
      ],
      true
    );
  }

  private readonly _difference = new Compartment();
  private _isDifference: boolean;
  private _isEditing: boolean;
  private _isSeen = false;
  private readonly _sight = new IntersectionObserver(entries =>
    this._onSight(entries)
  );
  private readonly _summary = element('div', 'jp-AgentExecPlain-summary');
  private readonly _toggle: HTMLButtonElement;
  private readonly _wrapper: CodeEditorWrapper;
  private _changed = new Signal<this, void>(this);
  private _seen = new Signal<this, void>(this);
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
    /** Whether what differs from that is the first view, not the second. */
    showsDifference?: boolean;
    /** Whether lines far from what is different are shown only when asked for. */
    fold?: boolean;
    /** Whether a person may leave out each part that is different. */
    parts?: boolean;
    lookalikes: Lookalikes;
    trans: TranslationBundle;
  }
}

const HIGHLIGHT = Decoration.line({ class: 'jp-AgentExecSource-highlight' });
const setHighlight = StateEffect.define<DecorationSet>();

/** The lines that are marked, until the text changes. */
const highlighted = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (set, { docChanged, effects }) =>
    docChanged
      ? Decoration.none
      : (effects.find(each => each.is(setHighlight))?.value ?? set),
  provide: field => EditorView.decorations.from(field)
});

/** A text with the line ends that an editor has. */
function plainEnds(source: string): string {
  return source.replace(/\r\n?/g, '\n');
}

/** Stands in a text for what is not shown as it is, or at its end. */
class Mark extends WidgetType {
  constructor(
    private readonly _key: string,
    private readonly _make: () => HTMLElement
  ) {
    super();
  }

  override eq({ _key }: Mark): boolean {
    return _key === this._key;
  }

  toDOM(): HTMLElement {
    return this._make();
  }
}

/** Show blank lines as one: at the start any, elsewhere if they are many. */
function* foldBlank(
  source: string,
  { trans }: SourceEditor.IOptions
): Generator<Range<Decoration>> {
  for (const { 0: lines, index } of source
    .replace(/\r\n/g, '\n')
    .matchAll(/(?:^|(?<=\n))(?:[ \t]*\n)+/g)) {
    const count = lines.split('\n').length - 1;
    const to = index + lines.length - 1;
    if (to > index && (index === 0 || count > MOST_BLANK)) {
      const text = trans._n('%1 blank line', '%1 blank lines', count);
      const widget = new Mark(text, () =>
        element('div', 'jp-AgentExecPlain-blank', text)
      );
      yield Decoration.replace({ widget, block: true }).range(index, to);
    }
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
        const key = piece.code + piece.why + piece.like;
        const widget = new Mark(key, () => createChip(piece, trans));
        // A carriage return alone ends a line in an editor.
        yield text[from] === '\n'
          ? Decoration.widget({ widget, side: 1 }).range(from)
          : Decoration.replace({ widget }).range(from, at);
      }
    }
    at += HIDDEN_END.test(line) ? 0 : 1;
  }
}

/** Takes one part of a difference back; there is nothing to accept. */
function createPartControl(
  type: 'reject' | 'accept',
  act: (event: MouseEvent) => void,
  trans: TranslationBundle
): HTMLElement {
  if (type === 'accept') {
    return element('span', '');
  }
  const button = linkButton(trans.__('Leave this part out'), () => undefined);
  button.addEventListener('click', act);
  return button;
}

/** Show beside a text what it replaces, of which nothing can hide either. */
function compare(
  before: string,
  { fold = false, lookalikes, parts = false, trans }: SourceEditor.IOptions
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
  return [
    unifiedMergeView({
      original: plainEnds(before),
      collapseUnchanged: fold ? {} : undefined,
      gutter: false,
      mergeControls: parts
        ? (type, act) => createPartControl(type, act, trans)
        : false,
      syntaxHighlightDeletions: false
    }),
    EditorState.phrases.of({
      '$ unchanged lines': trans.__('$ unchanged lines')
    }),
    ViewPlugin.define(view => {
      onDrawn(view);
      return { update: ({ view }) => onDrawn(view) };
    })
  ];
}
