/** What agents propose to change in a notebook, at its place. */
import type { Cell } from '@jupyterlab/cells';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Debouncer } from '@lumino/polling';
import { Signal } from '@lumino/signaling';
import { CellNeighbours } from '../ui/cellneighbours';
import type { Place } from '../ui/cellneighbours';
import { ProposedEditView } from './proposededit';
import { RoundBar } from './roundbar';
import { NotebookProposals } from './proposals';
import type { IEditOfRound, IRound } from './proposals';
import type { ILiveModel, IProposedEdit } from '../tokens';

/** Milliseconds without a key after which what was typed is merged anew. */
const TYPING = 500;

/**
 * Shows the edits that agents propose, each beside its cell, and a bar for all
 * of an agent's.
 *
 * Nothing of it is in the document: it is the same after a reload, in another
 * tab, and with collaboration.
 */
export class ProposedEdits implements IDisposable {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _options: ProposedEdits.IOptions
  ) {
    this._proposals = new NotebookProposals(
      _options.live,
      () => _panel.context.localPath
    );
    this._places = new CellNeighbours(_panel.content);
    this._proposals.changed.connect(
      () => this._places.hold(() => this._update()),
      this
    );
    this._proposals.decided.connect((_, { edits, sessionId, what }) =>
      this._places.hold(() => this._bars.get(sessionId)?.tell(what, edits))
    );
    _panel.context.pathChanged.connect(this._refresh, this);
    _panel.content.modelChanged.connect(this._onModelChanged, this);
    this._onModelChanged();
    void _panel.context.ready.then(() => this._refresh());
  }

  get isDisposed(): boolean {
    return this._places.isDisposed;
  }

  dispose(): void {
    Signal.clearData(this);
    this._typing.dispose();
    this._proposals.dispose();
    this._places.dispose();
    this._bars.forEach(bar => bar.dispose());
  }

  private _refresh(): void {
    if (!this.isDisposed) {
      this._proposals.refresh();
    }
  }

  /** Ask how edits merge with what was typed, if they do not merge with that yet. */
  private _mergeTyped(): void {
    const edits = this._proposals.rounds.flatMap(({ edits }) => edits);
    const isTyped = edits.some(({ cell_id, current, kind }) => {
      const source = this._cell(cell_id)?.model.sharedModel.getSource();
      const depends = kind === 'change' || kind === 'delete';
      return depends && source !== undefined && source !== current?.source;
    });
    if (isTyped) {
      this._refresh();
    }
  }

  private _onTyped(): void {
    void this._typing.invoke().catch(() => undefined);
  }

  private _onModelChanged(): void {
    this._panel.content.model?.cells.changed.connect(this._onCells, this);
  }

  private _onCells(): void {
    this._mark();
    if (this._proposals.rounds.length > 0) {
      this._refresh();
    }
  }

  private _update(): void {
    const { rounds } = this._proposals;
    const edits = new Map(
      rounds.flatMap(({ edits }) => edits).map(edit => [edit.id, edit])
    );
    this._views.forEach((view, id) => edits.has(id) || view.dispose());
    rounds.forEach(round => this._showRound(round));
    this._bars.forEach((bar, id) => {
      if (!rounds.some(({ sessionId }) => sessionId === id)) {
        bar.round = null;
      }
    });
    this._mark();
  }

  private _showRound(round: IRound): void {
    const { sessionId } = round;
    for (const edit of round.edits) {
      let known = this._views.get(edit.id);
      if (known && known.follows !== edit.follows) {
        known.dispose(); // its neighbour was moved or deleted
        known = undefined;
      }
      if (known) {
        known.render(edit, this._before(edit));
      } else {
        this._add(sessionId, edit);
      }
    }
    const bar = this._bars.get(sessionId) ?? this._addBar(sessionId);
    bar.round = { ...round, edits: this._inOrder(round.edits) };
  }

  /** Edits in the order in which they are shown. */
  private _inOrder(edits: readonly IEditOfRound[]): IEditOfRound[] {
    const { widgets } = this._panel.content;
    const at = new Map(widgets.map(({ model }, index) => [model.id, index]));
    const place = ({ cell_id, follows, kind }: IProposedEdit) =>
      kind === 'insert' ? (at.get(follows ?? '') ?? -1) + 0.5 : at.get(cell_id);
    return [...edits].sort(
      (a, b) => (place(a) ?? 0) - (place(b) ?? 0) || a.index - b.index
    );
  }

  private _add(sessionId: string, edit: IEditOfRound): void {
    const view = new ProposedEditView({
      ...this._options,
      mimeType: () => this._panel.content.codeMimetype,
      decide: (what, more) =>
        this._proposals.decide(what, sessionId, [edit.id], more)
    });
    view.render(edit, this._before(edit));
    this._views.set(edit.id, view);
    view.disposed.connect(() => this._views.delete(edit.id));
    const order = String(edit.index).padStart(6, '0');
    this._places.add(view, this._place(edit), `${order} ${edit.id}`);
  }

  private _addBar(sessionId: string): RoundBar {
    const bar = new RoundBar({
      trans: this._options.trans,
      decide: (what, ids) => this._proposals.decide(what, sessionId, ids),
      forget: () => this._proposals.forget(sessionId),
      heldBack: id => this._views.get(id)?.heldBack ?? '',
      reveal: id => {
        const view = this._views.get(id);
        if (view) {
          void this._places.reveal(view);
        }
      }
    });
    this._bars.set(sessionId, bar);
    bar.disposed.connect(() => this._bars.delete(sessionId));
    this._panel.contentHeader.addWidget(bar);
    return bar;
  }

  /** Where an edit is shown: a new cell after its neighbour, else its cell. */
  private _place({ cell_id, follows, kind }: IProposedEdit): Place {
    if (kind !== 'insert') {
      return { before: cell_id };
    }
    const first = this._panel.content.widgets[0]?.model.id;
    return follows ? { after: follows } : first ? { before: first } : 'end';
  }

  /** The source of the cell before the place of an edit. */
  private _before({ follows }: IProposedEdit): string | null {
    const cell = follows ? this._cell(follows) : undefined;
    return cell?.model.sharedModel.getSource() ?? null;
  }

  private _cell(id: string): Cell | undefined {
    return this._panel.content.widgets.find(({ model }) => model.id === id);
  }

  /** Mark the cells that would change, and follow what the user types there. */
  private _mark(): void {
    const kinds = new Map<string, string>();
    for (const { edits } of this._proposals.rounds) {
      edits.forEach(edit => kinds.set(edit.cell_id, edit.kind));
    }
    for (const { model, node } of this._panel.content.widgets) {
      const kind = kinds.get(model.id);
      if (kind) {
        node.dataset.agentExecProposed = kind;
        model.contentChanged.connect(this._onTyped, this);
      } else if (node.dataset.agentExecProposed) {
        delete node.dataset.agentExecProposed;
        model.contentChanged.disconnect(this._onTyped, this);
      }
    }
  }

  private readonly _bars = new Map<string, RoundBar>();
  private readonly _places: CellNeighbours;
  private readonly _proposals: NotebookProposals;
  private readonly _typing = new Debouncer(() => this._mergeTyped(), TYPING);
  private readonly _views = new Map<string, ProposedEditView>();
}

/** The options of what shows proposed edits. */
export namespace ProposedEdits {
  export interface IOptions {
    editors: IEditorServices;
    live: ILiveModel;
    trans: TranslationBundle;
  }
}
