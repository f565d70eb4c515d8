/** One bar for all that an agent proposes in a notebook. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IRound } from './proposals';
import type { EditDecision, IProposedEdit } from '../tokens';
import { element, linkButton, styledButton } from '../ui/elements';
import { errorText, quoted } from '../ui/wording';

/** Keeps or rejects all of a round, and leads from one edit to the next. */
export class RoundBar extends Widget {
  constructor(private readonly _options: RoundBar.IOptions) {
    super();
    const { trans } = _options;
    this.addClass('jp-AgentExecRound');
    this.node.setAttribute('role', 'region');
    this._status.setAttribute('role', 'status');
    this._decisions.append(
      linkButton(trans.__('Previous'), () => this._step(-1)),
      linkButton(trans.__('Next'), () => this._step(1)),
      styledButton(trans.__('Keep all'), 'accept', () => this._all('keep')),
      styledButton(trans.__('Reject all'), 'reject', () => this._all('reject'))
    );
    this._after.append(
      this._status,
      (this._undo = linkButton(trans.__('Undo'), () =>
        this._decide('undo', this._decided)
      )),
      linkButton(trans.__('Dismiss'), () => this._dismiss())
    );
    this._after.hidden = true;
    this._row.append(this._what, this._decisions, this._after);
    this.node.append(this._row);
  }

  /** What is open; null for nothing. */
  set round(round: IRound | null) {
    const { trans } = this._options;
    this._edits = round?.edits ?? [];
    const count = this._edits.length;
    if (round) {
      const agent = `\u2068${quoted(round.agent.name)}\u2069`;
      this._what.textContent = trans._n(
        '%2 proposes %1 change',
        '%2 proposes %1 changes',
        count,
        agent
      );
      const label = trans.__('Changes proposed by %1', agent);
      this.node.setAttribute('aria-label', label);
    }
    this._what.hidden = this._decisions.hidden = count === 0;
    if (count === 0 && this._after.hidden) {
      this.dispose();
    }
    this._fitRow();
  }

  /** Say what became of edits, and offer to undo what was decided. */
  tell(what: EditDecision, edits: readonly IProposedEdit[]): void {
    const { trans } = this._options;
    if (edits.length === 0) {
      this._dismiss();
      return;
    }
    const of = (status: IProposedEdit['status']) =>
      edits.filter(edit => edit.status === status);
    const [kept, rejected, open] = [of('kept'), of('rejected'), of('open')];
    const [obsolete, undone] = [of('obsolete'), of('undone')];
    const isUndo = what === 'undo';
    const parts: [number, string][] = [
      [
        kept.length,
        isUndo
          ? trans.__('%1 cannot be undone: %2', kept.length, kept[0]?.reason)
          : trans.__('%1 kept', kept.length)
      ],
      [rejected.length, trans.__('%1 rejected', rejected.length)],
      [undone.length, trans.__('%1 undone', undone.length)],
      [
        obsolete.length,
        trans.__('%1 no longer fits: %2', obsolete.length, obsolete[0]?.reason)
      ],
      [
        open.length,
        isUndo
          ? trans.__('%1 proposed again', open.length)
          : trans.__('%1 waits until no agent runs its cell', open.length)
      ]
    ];
    this._decided = isUndo ? [] : [...kept, ...rejected].map(({ id }) => id);
    this._say(
      parts
        .filter(([number]) => number > 0)
        .map(([, text]) => text)
        .join(' · ')
    );
  }

  protected override onAfterAttach(): void {
    this._fitRow();
  }

  protected override onResize(): void {
    this._fitRow();
  }

  /** Get the height of the row, which wraps in a narrow notebook. */
  private _fitRow(): void {
    const height = `${this._row.offsetHeight}px`;
    if (this.node.style.minHeight !== height) {
      this.node.style.minHeight = height;
      this.parent?.fit();
    }
  }

  /** Decide about all; what is held back is shown first. */
  private async _all(what: 'keep' | 'reject'): Promise<void> {
    const { heldBack, reveal } = this._options;
    const held = this._edits.find(({ fits, id }) => fits && heldBack(id));
    if (what === 'keep' && held) {
      reveal((this._at = held.id));
      this._say(heldBack(held.id));
      return;
    }
    await this._decide(
      what,
      this._edits.map(({ id }) => id)
    );
  }

  private _say(text: string): void {
    this._status.textContent = text;
    this._undo.hidden = this._decided.length === 0;
    this._after.hidden = false;
    this._fitRow();
  }

  private async _decide(
    what: EditDecision,
    ids: readonly string[]
  ): Promise<void> {
    const { decide, trans } = this._options;
    try {
      await decide(what, ids);
    } catch (error) {
      this._say(errorText(error, trans));
    }
  }

  private _step(by: 1 | -1): void {
    const count = this._edits.length;
    const at = this._edits.findIndex(({ id }) => id === this._at);
    const next = at < 0 ? (by > 0 ? 0 : count - 1) : (at + by + count) % count;
    this._at = this._edits[next].id;
    this._options.reveal(this._at);
  }

  private _dismiss(): void {
    this._options.forget();
    this._after.hidden = true;
    this._fitRow();
    if (this._edits.length === 0) {
      this.dispose();
    }
  }

  private readonly _after = element('span', 'jp-AgentExecRound-after');
  /** The edit that was led to last. */
  private _at = '';
  /** The edits whose decisions can be undone. */
  private _decided: readonly string[] = [];
  private readonly _decisions = element('span', 'jp-AgentExecRound-decisions');
  private _edits: readonly IProposedEdit[] = [];
  private readonly _row = element('div', 'jp-AgentExecRound-row');
  private readonly _status = element('span', 'jp-AgentExecRound-status');
  private readonly _undo: HTMLButtonElement;
  private readonly _what = element('span', 'jp-AgentExecRound-what');
}

/** What a bar is made of. */
export namespace RoundBar {
  export interface IOptions {
    trans: TranslationBundle;
    decide(what: EditDecision, ids: readonly string[]): Promise<void>;
    /** Nothing more is to be told of what was decided. */
    forget(): void;
    /** Why an edit is not kept with all others; empty if it can be. */
    heldBack(id: string): string;
    /** Bring an edit into view. */
    reveal(id: string): void;
  }
}
