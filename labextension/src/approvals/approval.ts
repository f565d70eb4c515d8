/** What an agent asks to run, and a person's answer. */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { KernelSpec } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { Message } from '@lumino/messaging';
import { Panel, PanelLayout, Widget } from '@lumino/widgets';
import { kernelName } from '../tokens';
import type {
  GrantSpan,
  IAgentSession,
  IExecution,
  ILiveModel
} from '../tokens';
import { ApprovalActions } from './approvalactions';
import {
  askerText,
  expiryText,
  kernelText,
  outcomeText,
  untilRestartText
} from './approvalwording';
import type { Clock } from '../ui/clock';
import { element, iconElement } from '../ui/elements';
import { statusIcons } from '../ui/icons';
import { waitingText } from '../ui/notebookwording';
import { PreviewView } from './preview';
import { askReason } from '../ui/reason';
import { SourceEditor } from '../ui/sourceeditor';
import { errorText, nameOf, plainName, quoted } from '../ui/wording';

/** Milliseconds for which the outcome can be read. */
const OUTCOME = 4000;

/** Ask for how long an agent may run more; null if it is not approved after all. */
async function askSpan(
  { agent }: IExecution,
  trans: TranslationBundle
): Promise<GrantSpan | null> {
  const spans: [GrantSpan, string][] = [
    ['restart', trans.__('Until the kernel restarts')],
    ['hour', trans.__('For an hour')]
  ];
  const { button } = await showDialog({
    title: trans.__('Approve'),
    body: trans.__(
      'Approve this, and let %1 run code in this kernel without asking',
      nameOf(agent)
    ),
    buttons: [
      Dialog.cancelButton(),
      ...spans.map(([, label]) => Dialog.okButton({ label }))
    ],
    defaultButton: 1
  });
  return spans.find(([, label]) => label === button.label)?.[0] ?? null;
}

/**
 * Shows one execution that asks, until it asks no more.
 *
 * A decision is about what is shown here: if something else asks meanwhile,
 * the server refuses it, and this shows the new one.
 */
export class ApprovalView extends Widget {
  /**
   * @param _shown - What asks.
   * @param _options - What views are made of.
   */
  constructor(
    private _shown: IExecution,
    private readonly _options: ApprovalView.IOptions
  ) {
    super();
    this.addClass('jp-AgentExecApproval');
    this.node.setAttribute('role', 'group');
    // Keys are for its buttons and fields, not for the notebook.
    this.node.dataset.lmSuppressShortcuts = 'true';
    const { live, trans } = _options;
    const approve = (span?: GrantSpan | 'once') => {
      const { id, source_sha256: seen } = this._shown;
      const edited = this._source?.edited;
      return this._decide(live.api.approve(id, seen, edited, span));
    };
    this._actions = new ApprovalActions({
      trans,
      approve: () => approve(),
      asks: () =>
        this._session?.grant === null &&
        (this._session.approval === 'always' ||
          (this._session.approval === 'first' && !this._coversMore)),
      coversMore: () => this._coversMore,
      unseen: () => this._sources.find(({ isSeen }) => !isSeen),
      isEditing: () => this._source?.isEditing ?? false,
      edit: () => this._source?.edit(),
      restore: () => this._source?.restore(),
      reject: () =>
        this._ask(askReason(trans), reason =>
          this._decide(live.api.reject(this._shown.id, reason || null))
        ),
      grant: () => this._ask(askSpan(this._shown, trans), approve),
      once: () => approve('once')
    });
    this._createLayout();
    this._others = live.asking.map(({ id }) => id);
    live.changed.connect(this._onChanged, this);
    live.heard.connect((_, { action }) => {
      if (action === 'approvals') {
        void this._look();
      }
    }, this);
    live.missed.connect(() => void this._look(), this);
    this._preview = new PreviewView(live.api, {
      ..._options,
      highlight: (lines, isSought) => this._source?.highlight(lines, isSought),
      source: () => this._shown.source
    });
    const layout = this._body.layout as PanelLayout;
    layout.insertWidget(layout.widgets.indexOf(this._actions), this._preview);
    this._render();
    void this._look();
    if (!this._asks) {
      void this._conclude();
    }
  }

  /** There is nothing to be seen here any more. */
  get over(): ISignal<this, void> {
    return this._over;
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._options.clock.set(this, false);
    clearTimeout(this._ending);
    this._leaveFocus();
    super.dispose();
  }

  /** Show how long it may still be decided about. */
  tick(): void {
    const { clock, live, trans } = this._options;
    const approval = this._isDecided ? null : this._shown.approval;
    const now = clock.now();
    const text = approval ? expiryText(approval.expires_at, now, trans) : '';
    if (this._expiry.textContent !== text) {
      this._expiry.textContent = text;
    }
    if (approval && now > Date.parse(approval.expires_at) && !this._isLate) {
      // No event has told so: perhaps none comes.
      this._isLate = true;
      void live.refresh();
    }
  }

  handleEvent(event: KeyboardEvent): void {
    const { ctrlKey, isComposing, key, metaKey, target } = event;
    const inSource = this._source?.node.contains(target as Node) ?? false;
    const isEditing = inSource && this._source?.isEditing;
    if (key === 'Escape' && !isComposing) {
      if (isEditing) {
        this._actions.focus();
      } else {
        this._focusAround();
      }
    } else if (isEditing && key === 'Enter' && (ctrlKey || metaKey)) {
      this._actions.approve();
    } else {
      if (inSource && !isEditing && key === 'Tab') {
        event.stopPropagation(); // the editor would write it
      }
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this.node.addEventListener('keydown', this, true);
    this._appear();
  }

  protected override onBeforeDetach(msg: Message): void {
    this.node.removeEventListener('keydown', this, true);
    this._options.clock.set(this, false);
    super.onBeforeDetach(msg);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._appear();
  }

  protected override onAfterHide(msg: Message): void {
    this._options.clock.set(this, false);
    super.onAfterHide(msg);
  }

  private _appear(): void {
    if (!this._isDecided) {
      this._actions.guard();
    }
    const ticks = this.isVisible && !this._isDecided;
    this._options.clock.set(this, ticks);
    this.tick();
  }

  /** What it asks now; null if it does not any more. */
  private get _asks(): IExecution | null {
    return this._options.live.asks(this._shown.id);
  }

  private _onChanged(): void {
    const { live, trans } = this._options;
    const now = this._asks;
    if (this._isDecided) {
      if (now) {
        this._over.emit(); // it needs approval again
      } else if (this._ending === undefined) {
        void this._conclude(); // it may have begun to run
      }
      return;
    }
    if (!now) {
      void this._conclude();
      return;
    }
    const others = live.asking.map(({ id }) => id);
    if (others.some(id => !this._others.includes(id))) {
      this._actions.guard(); // what asks elsewhere may move this one
    }
    this._others = others;
    const before = this._shown;
    this._shown = now;
    if (now.approval?.asked_at !== before.approval?.asked_at) {
      this._preview.reset();
      void this._look();
    }
    this._renderFacts();
    this._renderBehind();
    this._actions.update();
    this._source!.mimeType = this._mimeType;
    if (
      now.source_sha256 !== before.source_sha256 ||
      now.approval?.before !== before.approval?.before ||
      now.approval?.asked_at !== before.approval?.asked_at
    ) {
      this._notice.textContent = trans.__(
        'The code, its cell or its kernel has changed since you looked at it. Check it again.'
      );
      this._render();
    }
  }

  private async _look(): Promise<void> {
    if (await this._preview.look(this._shown.id)) {
      this._actions.guard(); // it has moved them
    }
  }

  /** Decide once a person has answered a question, about what they saw before it. */
  private async _ask<T>(
    question: Promise<T | null>,
    decide: (answer: T) => Promise<void>
  ): Promise<void> {
    const source = this._source;
    const answer = await question;
    if (answer !== null && this._source === source) {
      await decide(answer);
    }
  }

  private async _decide(decision: Promise<unknown>): Promise<void> {
    this._setBusy(true);
    this._notice.textContent = '';
    try {
      await this._options.live.settle(decision);
    } catch (error) {
      // Unless what was refused is another now, which it says.
      const isTold = this._notice.textContent !== '';
      if (!isTold && !this.isDisposed && !this._isDecided) {
        this._notice.textContent = errorText(error, this._options.trans);
      }
    }
    this._setBusy(false);
  }

  private _setBusy(value: boolean): void {
    if (!this._isDecided && this._source) {
      this._actions.busy = this._source.busy = value;
    }
  }

  /** Say what became of it: until its turn if it is to run, else for a moment. */
  private async _conclude(): Promise<void> {
    const { clock, live, trans } = this._options;
    clock.set(this, false);
    this._isDecided = true;
    this._leaveFocus();
    this._body.dispose();
    this._notice.textContent = '';
    this._expiry.textContent = '';
    const asker = askerText(this._shown, trans);
    this._who.textContent = trans.__('Agent %1', `\u2068${asker}\u2069`);
    const texts = [trans.__('Already decided')];
    let waits = false;
    try {
      const { id } = this._shown;
      const execution = live.pending(id) ?? (await live.api.getExecution(id));
      if (execution.started_at !== null) {
        this._over.emit(); // its cell tells the rest
        return;
      }
      texts[0] = outcomeText(execution, trans) || texts[0];
      if (execution.status === 'queued') {
        const { waiting_for } = execution; // null before it has its place
        texts.push(...(waiting_for ? [waitingText(waiting_for, trans)] : []));
        waits = true;
      }
    } catch {
      // It does not ask any more, that much is known.
    }
    this._outcome.textContent = texts.join(' · ');
    if (!waits && !this.isDisposed) {
      this._ending ??= setTimeout(() => this._over.emit(), OUTCOME);
    }
  }

  /** The session, which tells in which kernel it works; null once it is closed. */
  private get _session(): IAgentSession | null {
    const { sessions } = this._options.live;
    return sessions.find(({ id }) => id === this._shown.session_id) ?? null;
  }

  private _render(): void {
    const { trans } = this._options;
    const asks = (who: string) => trans.__('Agent %1 needs approval', who);
    const asker = askerText(this._shown, trans);
    this.node.setAttribute('aria-label', asks(asker));
    // Isolated: a name in another script does not turn what stands beside it.
    this._who.textContent = asks(`\u2068${asker}\u2069`);
    this._isLate = false;
    this._renderFacts();
    this._renderBehind();
    this._renderSource();
    this._actions.reset();
    this.tick();
  }

  private _renderFacts(): void {
    const { trans } = this._options;
    const { approval, document: placed } = this._shown;
    const path = placed?.path ?? this._session?.path;
    const fact = (name: string, value: string, className = '') => {
      const said = element('dd', className);
      said.append(element('bdi', '', value));
      return [element('dt', className, name), said];
    };
    const kernel = kernelText(this._shown, this._session, trans);
    const purpose = this._shown.claim?.purpose;
    const where = 'jp-AgentExecApproval-where';
    this._facts.replaceChildren(
      ...fact(trans.__('Kernel'), kernel, where),
      ...(path ? fact(trans.__('Notebook'), plainName(path), where) : []),
      ...(approval?.edits_cell
        ? fact(
            trans.__('Edit and run'),
            approval.before === null
              ? trans.__('adds this cell and runs it, or neither')
              : trans.__('replaces this cell and runs it, or neither')
          )
        : []),
      ...(this._coversMore
        ? fact(trans.__('If approved'), untilRestartText(trans))
        : []),
      ...(purpose ? fact(trans.__('Says why'), quoted(purpose)) : [])
    );
  }

  /** Whether an approval is for all code of the agent in this kernel. */
  private get _coversMore(): boolean {
    const isEdit = this._shown.approval?.edits_cell ?? false;
    return this._session?.approval === 'first' && !isEdit;
  }

  /** How many more wait for the decision about the first. */
  private _renderBehind(): void {
    const { live, trans } = this._options;
    const { id, session_id } = this._shown;
    const first = live.asking.find(each => each.session_id === session_id);
    const count = first?.id === id ? (this._session?.behind ?? 0) : 0;
    this._behind.textContent =
      count > 0
        ? trans._n(
            '%1 more waits for this decision',
            '%1 more wait for this decision',
            count
          )
        : '';
  }

  /** Show the source, or what a person has made of it. */
  private _renderSource(): void {
    const { editors, live, trans } = this._options;
    const shown = this._shown;
    const { approval, lookalikes, source } = shown;
    this._source?.dispose();
    const editor = (this._source = new SourceEditor({
      factory: editors.factoryService.newInlineEditor,
      mimeType: this._mimeType,
      source,
      draft: live.draftOf(shown),
      before: approval?.before ?? null,
      lookalikes,
      trans
    }));
    editor.changed.connect(() => {
      live.setDraft(shown, editor.edited);
      this._renderTrial();
    });
    this._sources = [editor];
    const layout = this._body.layout as PanelLayout;
    layout.insertWidget(layout.widgets.indexOf(this._also), editor);
    this._renderTrial();
    this._renderAlso();
    this._sources.forEach(({ seen }) =>
      seen.connect(() => this._actions.update())
    );
  }

  /** Show the trial while the source is what was tried. */
  private _renderTrial(): void {
    const isEdited = this._source?.edited !== undefined;
    if (this._preview.isEdited !== isEdited) {
      this._preview.isEdited = isEdited;
      this._actions.guard(); // it has moved them
    }
  }

  /** Show what else the approval lets run: the rest of a restore. */
  private _renderAlso(): void {
    const { editors, trans } = this._options;
    const { also = [] } = this._shown.approval ?? {};
    this._also.widgets.slice().forEach(each => each.dispose());
    for (const [n, { source }] of also.entries()) {
      const text = trans.__('Then %1 of %2', n + 2, also.length + 1);
      const title = element('div', 'jp-AgentExecApproval-note', text);
      this._also.addWidget(new Widget({ node: title }));
      const editor = new SourceEditor({
        factory: editors.factoryService.newInlineEditor,
        mimeType: this._mimeType,
        source: source ?? '',
        before: null,
        lookalikes: this._shown.lookalikes,
        trans
      });
      this._sources.push(editor);
      this._also.addWidget(editor);
    }
  }

  /** What language the source has. */
  private get _mimeType(): string {
    const { kernel } = this._shown;
    const name = kernel?.name ?? (this._session && kernelName(this._session));
    const { editors, specs } = this._options;
    const known = specs();
    const language = known?.kernelspecs[name ?? known.default]?.language;
    return language
      ? editors.mimeTypeService.getMimeTypeByLanguage({ name: language })
      : 'text/plain';
  }

  private _createLayout(): void {
    this._outcome.setAttribute('role', 'status');
    this._notice.setAttribute('role', 'alert');
    const icon = iconElement(statusIcons.awaiting_approval);
    const head = new Widget({
      node: element('div', 'jp-AgentExecApproval-head')
    });
    head.node.append(icon, this._who, this._expiry, this._outcome);
    const facts = new Widget({ node: this._facts });
    const body = (this._body.layout = new PanelLayout());
    const behind = new Widget({ node: this._behind });
    [facts, this._also, this._actions, behind].forEach(each =>
      body.addWidget(each)
    );
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(head);
    layout.addWidget(new Widget({ node: this._notice }));
    layout.addWidget(this._body);
  }

  /** If the keyboard is here, lead it to what stays. */
  private _leaveFocus(): void {
    if (this.node.contains(document.activeElement)) {
      this._focusAround();
    }
  }

  private _focusAround(): void {
    const around = this.node.parentElement?.closest<HTMLElement>('[tabindex]');
    around?.focus({ preventScroll: true });
  }

  private readonly _actions: ApprovalActions;
  private readonly _also = new Panel();
  private readonly _behind = element('div', 'jp-AgentExecApproval-note');
  private readonly _body = new Widget();
  private _ending: ReturnType<typeof setTimeout> | undefined;
  private readonly _expiry = element('span', 'jp-AgentExecApproval-expiry');
  private readonly _facts = element('dl', 'jp-AgentExecApproval-facts');
  private _isDecided = false;
  private _isLate = false;
  private readonly _preview: PreviewView;
  private readonly _notice = element('div', 'jp-AgentExecApproval-notice');
  private readonly _outcome = element('span', 'jp-AgentExecApproval-outcome');
  /** What asked when this looked last. */
  private _others: readonly string[];
  private _source: SourceEditor | null = null;
  /** All code that an approval lets run. */
  private _sources: SourceEditor[] = [];
  private readonly _who = element('span', 'jp-AgentExecApproval-who');
  private _over = new Signal<this, void>(this);
}

/** The options of a view. */
export namespace ApprovalView {
  /** What all views share. */
  export interface IOptions {
    live: ILiveModel;
    editors: IEditorServices;
    /** The kernels that there are, which tell the language of a source. */
    specs: () => KernelSpec.ISpecModels | null;
    clock: Clock;
    /** Renders only what is harmless. */
    rendermime: IRenderMimeRegistry;
    trans: TranslationBundle;
  }
}
