/** What an agent asks to run, and a person's answer. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { Message } from '@lumino/messaging';
import { PanelLayout, Widget } from '@lumino/widgets';
import { ApiError } from '../api/errors';
import type {
  IAgentExecApi,
  IAgentSession,
  IApprovalsModel,
  IExecution
} from '../tokens';
import { ApprovalActions } from './approvalactions';
import {
  askerText,
  expiryText,
  kernelText,
  outcomeText,
  reasonTexts
} from './approvalwording';
import type { Clock } from './clock';
import { element, linkButton } from './elements';
import { statusIcons } from './icons';
import { plainName } from './notebookwording';
import { createComparison, createSource } from './plainsource';
import { describeError } from './wording';

/** Milliseconds for which the outcome can be read. */
const OUTCOME = 4000;

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
    const { approvals, drafts, trans } = _options;
    this._actions = new ApprovalActions({
      drafts,
      trans,
      approve: source =>
        this._decide(() => approvals.approve(this._shown, source)),
      reject: reason =>
        this._decide(() => approvals.reject(this._shown, reason || null)),
      grant: minutes =>
        this._decide(() => approvals.grant(this._shown.session_id, minutes))
    });
    this._createLayout();
    approvals.changed.connect(this._onChanged, this);
    // What asks elsewhere may move this one.
    approvals.asked.connect(this._actions.guard, this._actions);
    this._render();
    void this._readSession();
  }

  /** There is nothing to be seen here any more. */
  get over(): ISignal<this, void> {
    return this._over;
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    const { approvals, clock } = this._options;
    approvals.asked.disconnect(this._actions.guard, this._actions);
    clock.set(this, false);
    clearTimeout(this._ending);
    this._leaveFocus();
    super.dispose();
  }

  /** Show how long it may still be decided about. */
  tick(): void {
    const { approvals, clock, trans } = this._options;
    const { approval } = this._shown;
    const now = clock.now();
    const text = approval ? expiryText(approval.expires_at, now, trans) : '';
    if (this._expiry.textContent !== text) {
      this._expiry.textContent = text;
    }
    if (approval && now > Date.parse(approval.expires_at) && !this._isLate) {
      // No event has told so: perhaps none comes.
      this._isLate = true;
      approvals.refresh();
    }
  }

  handleEvent(event: KeyboardEvent): void {
    if (event.key === 'Escape' && !event.isComposing) {
      event.preventDefault();
      event.stopPropagation();
      if (!this._actions.back()) {
        this._focusAround();
      }
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this.node.addEventListener('keydown', this);
    this._appear();
  }

  protected override onBeforeDetach(msg: Message): void {
    this.node.removeEventListener('keydown', this);
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
    this._actions.guard();
    const ticks = this.isVisible && this._ending === undefined;
    this._options.clock.set(this, ticks);
    this.tick();
  }

  private _onChanged(): void {
    const { approvals, trans } = this._options;
    if (this._ending !== undefined) {
      return;
    }
    const now = approvals.get(this._shown.id);
    if (!now) {
      void this._conclude();
      return;
    }
    const before = this._shown;
    this._shown = now;
    if (now.source_sha256 !== before.source_sha256) {
      this._notice.textContent = trans.__(
        'The source has changed since you looked at it. Check it again.'
      );
      this._render();
    } else if (now.approval?.asked_at !== before.approval?.asked_at) {
      this._notice.textContent = trans.__(
        'The kernel has changed, so this needs approval again.'
      );
      this._render();
    }
  }

  private async _decide(decide: () => Promise<void>): Promise<void> {
    this._actions.busy = true;
    this._notice.textContent = '';
    const shown = this._shown;
    try {
      await decide();
    } catch (error) {
      const seen = error instanceof ApiError && this._shown !== shown;
      if (!seen && !this.isDisposed && this._ending === undefined) {
        const { title, hint } = describeError(error, this._options.trans);
        this._notice.textContent = `${title}. ${hint}`;
      }
    }
    if (!this.isDisposed) {
      this._actions.busy = false;
    }
  }

  /** Say what became of it, for a moment. */
  private async _conclude(): Promise<void> {
    const { api, clock, trans } = this._options;
    clock.set(this, false);
    this._ending = setTimeout(() => this._over.emit(), OUTCOME);
    this._leaveFocus();
    this._body.hide();
    this._notice.textContent = '';
    this._expiry.textContent = '';
    let text = trans.__('No longer awaiting approval');
    try {
      text = outcomeText(await api.getExecution(this._shown.id), trans) || text;
    } catch {
      // It does not ask any more, that much is known.
    }
    this._outcome.textContent = text;
  }

  /** Learn in which kernel the session works. */
  private async _readSession(): Promise<void> {
    try {
      this._session = await this._options.api.getSession(
        this._shown.session_id
      );
    } catch {
      // The kernel is then called by its id.
    }
    if (!this.isDisposed) {
      this._renderFacts();
    }
  }

  private _render(): void {
    const { trans } = this._options;
    const asks = (who: string) => trans.__('Agent %1 requests approval', who);
    const asker = askerText(this._shown, trans);
    this.node.setAttribute('aria-label', asks(asker));
    // Isolated: a name in another script does not turn what stands beside it.
    this._who.textContent = asks(`\u2068${asker}\u2069`);
    this._isLate = false;
    this._renderFacts();
    this._renderSource(false);
    this._actions.reset(this._shown);
    this.tick();
  }

  private _renderFacts(): void {
    const { trans } = this._options;
    const { document: placed } = this._shown;
    const path = placed?.path ?? this._session?.path;
    const facts = [
      [trans.__('Kernel'), kernelText(this._shown, this._session, trans)],
      ...(path ? [[trans.__('Notebook'), plainName(path)]] : []),
      ...reasonTexts(this._shown, trans).map(text => [trans.__('Asks'), text])
    ];
    this._facts.replaceChildren(
      ...facts.flatMap(([name, value]) => {
        const said = element('dd', '');
        said.append(element('bdi', '', value));
        return [element('dt', '', name), said];
      })
    );
  }

  /** Show the source, or what of it is new. */
  private _renderSource(compared: boolean): void {
    const { trans } = this._options;
    const { approval, source } = this._shown;
    const before = approval?.before ?? null;
    this._source.node.replaceChildren(
      ...(compared && before !== null
        ? createComparison(before, source, trans)
        : createSource(source, trans))
    );
    if (before === null) {
      return;
    }
    const toggle = linkButton(trans.__('Show what changed'), () => {
      this._renderSource(!compared);
      this._source.node.querySelector('button')?.focus();
    });
    toggle.setAttribute('aria-pressed', String(compared));
    this._source.node.prepend(toggle);
  }

  private _createLayout(): void {
    this._outcome.setAttribute('role', 'status');
    this._notice.setAttribute('role', 'alert');
    const icon = element('span', 'jp-AgentExec-icon');
    statusIcons.awaiting_approval.element({ container: icon });
    const head = new Widget({
      node: element('div', 'jp-AgentExecApproval-head')
    });
    head.node.append(icon, this._who, this._expiry, this._outcome);
    const facts = new Widget({ node: this._facts });
    const body = (this._body.layout = new PanelLayout());
    [facts, this._source, this._actions].forEach(each => body.addWidget(each));
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
  private readonly _body = new Widget();
  private _ending: ReturnType<typeof setTimeout> | undefined;
  private readonly _expiry = element('span', 'jp-AgentExecApproval-expiry');
  private readonly _facts = element('dl', 'jp-AgentExecApproval-facts');
  private _isLate = false;
  private readonly _notice = element('div', 'jp-AgentExecApproval-notice');
  private readonly _outcome = element('span', 'jp-AgentExecApproval-outcome');
  private _session: IAgentSession | null = null;
  private readonly _source = new Widget();
  private readonly _who = element('span', 'jp-AgentExecApproval-who');
  private _over = new Signal<this, void>(this);
}

/** The options of a view. */
export namespace ApprovalView {
  /** What all views share. */
  export interface IOptions {
    api: Pick<IAgentExecApi, 'getExecution' | 'getSession'>;
    approvals: IApprovalsModel;
    /** What people are about to approve instead, by what was asked. */
    drafts: Map<string, string>;
    clock: Clock;
    trans: TranslationBundle;
  }
}
