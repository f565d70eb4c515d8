/** Whose a notebook's cell is, and how its execution went: one quiet line. */
import type { CodeCell } from '@jupyterlab/cells';
import { checkIcon, editIcon } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import type { ISignal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';
import { isEdited, isRunAgain } from '../api/cellrecord';
import { Coalescer } from '../live/coalescer';
import { isFinal, isRunning } from '../tokens';
import type { ICellRecord, IExecution, IReview } from '../tokens';
import { BadgeActions } from './badgeactions';
import type { Clock } from '../ui/clock';
import { element, iconElement } from '../ui/elements';
import { commentIcon, flagIcon, statusIcons, unknownIcon } from '../ui/icons';
import {
  cellDuration,
  changedText,
  heldText,
  ownerText,
  waitingText
} from '../ui/notebookwording';
import { commentText, reviewText } from '../review/reviewwording';
import {
  agentText,
  inOneLine,
  momentText,
  purposeText,
  quoted,
  statusWord
} from '../ui/wording';

/** Milliseconds between two looks at a source that is being edited. */
const DRAW_INTERVAL_MS = 300;

/** Milliseconds after which the server knows what waits or runs. */
const GRACE = 10_000;

/** Of a cell whose outputs are an agent's; it has a coloured edge. */
const AGENT_CELL = 'jp-mod-agentExec';

/**
 * Keys on a badge's buttons are for them, not for the notebook. Those with Ctrl
 * or Cmd are shortcuts: Lumino looks for this before a listener here hears a key.
 */
const OWN_KEYS = 'data-lm-suppress-shortcuts';

/** How many colours there are for agents. */
const COLOURS = 12;

/** What is used of a change of a cell. */
interface ICellChange {
  sourceChange?: unknown;
  executionCountChange?: unknown;
}

/** A badge above a cell's input. */
export class Badge extends Widget {
  constructor(
    private readonly _cell: CodeCell,
    private _record: ICellRecord,
    private readonly _options: Badge.IOptions
  ) {
    super();
    this.addClass('jp-AgentExecBadge');
    this.node.setAttribute('role', 'group');
    this.node.toggleAttribute(OWN_KEYS, true);
    for (const type of ['keydown', 'keyup'] as const) {
      this.node.addEventListener(type, ({ ctrlKey, metaKey }) => {
        this.node.toggleAttribute(OWN_KEYS, !ctrlKey && !metaKey);
      });
    }
    const { id, sharedModel } = _cell.model;
    this._actions = new BadgeActions({ ..._options, cellId: id, sharedModel });
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(this._createLine());
    layout.addWidget(this._actions);
    this._looking = new Coalescer(async () => this._look(), DRAW_INTERVAL_MS);
    _cell.model.sharedModel.changed.connect(this._onCellChanged, this);
    _options.reviews.changed.connect(this._renderReview, this);
    this.render();
  }

  get record(): ICellRecord {
    return this._record;
  }
  set record(record: ICellRecord) {
    this._record = record;
    this.render();
  }

  /** Whether the Tab key stops at its buttons. */
  set tabStop(value: boolean) {
    this._actions.tabStop = value;
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._options.clock.set(this, false);
    this._looking.dispose();
    this._cell.removeClass(AGENT_CELL);
    super.dispose();
  }

  /** Show all anew. */
  render(): void {
    const { trans, clock } = this._options;
    const { accepted_at, agent, outputs, purpose } = this._record;
    this.node.dataset.outputs = outputs ?? '';
    this._renderStatus();
    this._cell.node.style.setProperty(
      '--jp-agent-exec-colour',
      colourOf(agent.name)
    );
    this._agent.textContent = ownerText(this._record, trans);
    this._agent.title = agentText(agent);
    this._why.title = purpose ? purposeText(purpose, trans) : '';
    this._why.textContent = purpose ? quoted(inOneLine(purpose)) : '';
    this._time.hidden = accepted_at === '';
    this._time.dateTime = accepted_at;
    this._time.textContent = momentText(accepted_at, clock.now());
    this._time.title = new Date(accepted_at).toLocaleString();
    this._look();
    this.tick();
  }

  /** Show how long it has been running, or behind whom it waits. */
  tick(): void {
    const { trans, clock, live } = this._options;
    const { execution_id, status } = this._record;
    const unknown = this._isUnknown();
    if (unknown !== (this.node.dataset.status === 'unknown')) {
      this._renderStatus();
      this._look();
    }
    const pending = !isFinal(status) && !unknown;
    clock.set(this, pending && this.isAttached);
    const waiting =
      status === 'queued' ? live.pending(execution_id)?.waiting_for : null;
    const text = waiting
      ? waitingText(waiting, trans)
      : unknown
        ? ''
        : cellDuration(this._record, clock.now());
    if (this._duration.textContent !== text) {
      this._duration.textContent = text;
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this.tick();
  }

  protected override onBeforeDetach(msg: Message): void {
    this._options.clock.set(this, false);
    const notebook = this._cell.parent;
    if (notebook && this.node.contains(document.activeElement)) {
      // Where the keyboard was goes away with the cell.
      requestAnimationFrame(() => notebook.isDisposed || notebook.activate());
    }
    super.onBeforeDetach(msg);
  }

  private _renderStatus(): void {
    const { trans } = this._options;
    const unknown = this._isUnknown();
    const status = unknown ? 'unknown' : this._record.status;
    if (this.node.dataset.status !== status) {
      this.node.dataset.status = status;
      this._word.textContent = unknown
        ? trans.__('Saved before it finished')
        : statusWord(this._record.status, trans);
      this._icon.replaceChildren();
      const icon = unknown ? unknownIcon : statusIcons[this._record.status];
      icon?.element({ container: this._icon });
    }
    this._word.title = inOneLine(this._record.reason ?? '');
  }

  /** Show what became of the outputs; a person's own are not ours to tell. */
  private _renderOutputs(runAgain: boolean): void {
    const { trans } = this._options;
    const { held, outputs } = this._record;
    const text =
      outputs === 'held'
        ? heldText(held, trans)
        : outputs === 'accepted'
          ? trans.__('Outputs accepted')
          : '';
    this._held.hidden = runAgain || text === '';
    this._held.title = this._held.textContent = text;
    const runs = isRunning(this._record.status) && !this._isUnknown();
    this._actions.render(this._record, runAgain, runs);
  }

  /** Show what people think of the execution. */
  private _renderReview(): void {
    const { reviews, trans } = this._options;
    reviews.look(this._record);
    const review = reviews.get(this._record.execution_id);
    this._review.hidden = review === null;
    this._review.dataset.verdict = review?.verdict ?? '';
    const text = review ? reviewText(review, trans) : '';
    const comment = review && commentText(review);
    this._review.title = [text, comment].filter(Boolean).join('\n');
    this._reviewWord.textContent = text;
    this._reviewIcon.replaceChildren();
    const icon =
      review?.verdict === 'approved'
        ? checkIcon
        : review?.verdict === 'flagged'
          ? flagIcon
          : commentIcon;
    icon.element({ container: this._reviewIcon });
    const undoneBy = reviews.undoneBy(this._record.execution_id);
    this._undone.hidden = undoneBy === null;
    this._undone.textContent = undoneBy === null ? '' : trans.__('Undone');
    this._undone.title = undoneBy ?? '';
    this._renderLabel();
  }

  /** Whether it waited or ran, and the server knows nothing of that now. */
  private _isUnknown(): boolean {
    const { clock, live } = this._options;
    const { accepted_at, execution_id, status } = this._record;
    return (
      !isFinal(status) &&
      live.isReady &&
      !live.pending(execution_id) &&
      clock.now() - Date.parse(accepted_at || '1970-01-01') > GRACE
    );
  }

  private _onCellChanged(_: unknown, change: ICellChange): void {
    if (change.sourceChange || change.executionCountChange) {
      void this._looking.request();
    }
  }

  /** Look whether the source is still the one that ran, and ran last. */
  private _look(): void {
    if (this._cell.isDisposed) {
      return;
    }
    const { trans } = this._options;
    const { executionCount, sharedModel } = this._cell.model;
    const edited = isEdited(this._record, sharedModel.getSource());
    const runAgain = isRunAgain(this._record, executionCount);
    this._cell.toggleClass(AGENT_CELL, !runAgain);
    this._renderOutputs(runAgain);
    const changed = changedText(this._record, edited, runAgain, trans);
    this._edited.hidden = changed === '';
    this._editedWord.textContent = changed;
    this._renderReview();
  }

  private _renderLabel(): void {
    const parts = [
      this._options.trans.__(
        'Agent %1',
        ownerText(this._record, this._options.trans)
      ),
      this._word.textContent,
      this._time.textContent,
      this._editedWord.textContent,
      this._held.hidden ? '' : this._held.textContent,
      this._reviewWord.textContent,
      this._undone.textContent
    ];
    this.node.setAttribute('aria-label', parts.filter(Boolean).join(', '));
  }

  private _createLine(): Widget {
    const line = new Widget({ node: createPart('div', 'line') });
    const status = createPart('span', 'status');
    status.classList.add('jp-AgentExec-status');
    status.append(this._icon, this._word);
    // A name in another script does not turn what stands beside it.
    this._agent.dir = this._why.dir = 'auto';
    this._edited.append(iconElement(editIcon), this._editedWord);
    this._review.append(this._reviewIcon, this._reviewWord);
    line.node.append(
      status,
      this._duration,
      this._agent,
      this._time,
      this._why,
      this._edited,
      this._held,
      this._review,
      this._undone
    );
    this.node.addEventListener('keydown', event => {
      // Escape leads back to the cell.
      if (event.key === 'Escape') {
        event.preventDefault();
        this._cell.node.focus();
      }
    });
    return line;
  }

  private readonly _actions: BadgeActions;
  private readonly _agent = createPart('span', 'agent');
  private readonly _duration = createPart('span', 'duration');
  private readonly _edited = createPart('span', 'edited');
  private readonly _editedWord = element('span', '');
  private readonly _held = createPart('span', 'held');
  private readonly _icon = iconElement();
  private readonly _looking: Coalescer;
  private readonly _review = createPart('span', 'review');
  private readonly _reviewIcon = iconElement();
  private readonly _reviewWord = element('span', '');
  private readonly _time = createPart('time', 'time');
  private readonly _undone = createPart('span', 'undone');
  private readonly _why = createPart('span', 'why');
  private readonly _word = element('span', '');
}

/**
 * The colour of an agent's cells: the same wherever its name is.
 *
 * All have the lightness that stands out from white and from black alike.
 */
function colourOf(name: string): string {
  const sum = Array.from(name).reduce(
    (before, each) => (before * 31 + each.codePointAt(0)!) % 65_521,
    7
  );
  return `oklch(60% 0.15 ${(sum % COLOURS) * (360 / COLOURS)})`;
}

/** A part of a badge. */
function createPart<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  part: string
): HTMLElementTagNameMap[K] {
  return element(tag, `jp-AgentExecBadge-${part}`);
}

/** What waits or runs. */
interface IKnownExecutions {
  readonly changed: ISignal<unknown, void>;
  /** Whether the server has told. */
  readonly isReady: boolean;
  /** An execution that waits or runs; null if nothing is known of it. */
  pending(executionId: string): IExecution | null;
}

/** What people think of executions. */
export interface ICellReviews {
  readonly changed: ISignal<unknown, void>;
  get(executionId: string): IReview | null;
  /** Who made the kernel as it was before; null if nobody did. */
  undoneBy(executionId: string): string | null;
  /** Have what is said of a cell's execution looked up. */
  look(record: ICellRecord): void;
}

/** The options of a badge. */
export namespace Badge {
  /** What all badges share. */
  export interface IOptions extends Omit<
    BadgeActions.IOptions,
    'cellId' | 'sharedModel'
  > {
    clock: Clock;
    live: IKnownExecutions;
  }
}
