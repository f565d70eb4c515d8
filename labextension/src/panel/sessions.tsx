/** The list of sessions. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message as LuminoMessage } from '@lumino/messaging';
import * as React from 'react';
import type { SearchModel } from './search';
import { CommandIDs } from '../tokens';
import type {
  Execute,
  IAgentAtWork,
  IAgentSession,
  IExecution,
  ILiveModel
} from '../tokens';
import { SearchResults } from './find';
import type { ShowCell } from './find';
import {
  besideTitle,
  credentialWord,
  describeError,
  momentText,
  shortText,
  statusWord,
  targetText,
  titleText,
  whoText
} from '../ui/wording';
import { doingText } from '../ui/notebookwording';
import { sessionIcons, statusIcons } from '../ui/icons';
import { OptionList } from './list';
import { ErrorMessage, Message, Words } from '../ui/message';

/** What a person types to see the panel at work. */
const EXAMPLE = 'jupyter agent-exec run "1 + 1"';

/** Milliseconds for which the list stays as it is after somebody used it. */
const USED_MS = 5000;

/** Shows the sessions and lets one be chosen, or the cells that match. */
export class SessionList extends ReactWidget {
  constructor(private readonly _options: SessionList.IOptions) {
    super();
    this.addClass('jp-AgentExecSessions');
    const { live, search } = _options;
    search.changed.connect(this.update, this);
    live.changed.connect(this.update, this);
    for (const use of ['pointerdown', 'wheel', 'keydown']) {
      const onUse = () => (this._usedAt = performance.now());
      this.node.addEventListener(use, onUse, { passive: true });
    }
  }

  /** Lead the keyboard to where it was in the list. */
  focusList(): void {
    this.node
      .querySelector<HTMLElement>('[role="option"][tabindex="0"]')
      ?.focus();
  }

  protected override onUpdateRequest(msg: LuminoMessage): void {
    super.onUpdateRequest(msg);
    void this.renderPromise?.then(() => this._follow());
  }

  /** Bring a session that begins to ask into view, unless somebody uses the list. */
  private _follow(): void {
    if (!this.isVisible) {
      return;
    }
    const { asking, inputs, proposing } = this._options.live;
    const before = this._asking;
    this._asking = [
      ...[...asking, ...inputs].map(({ session_id }) => session_id),
      ...proposing.map(({ id }) => id)
    ];
    const id = this._asking.find(each => !before.includes(each));
    const isUsed =
      this.node.closest('.jp-AgentExecPanel')?.matches(':hover') ||
      this.node.contains(document.activeElement) ||
      performance.now() < this._usedAt + USED_MS;
    if (id !== undefined && !isUsed) {
      this.node
        .querySelector(`[data-id="${CSS.escape(id)}"]`)
        ?.scrollIntoView({ block: 'nearest' });
    }
  }

  protected render(): JSX.Element {
    const List = this._options.search.isSearching ? SearchResults : Sessions;
    return <List {...this._options} />;
  }

  /** The sessions that ask for something, as this list last saw them. */
  private _asking: readonly string[] = [];
  private _usedAt = -USED_MS;
}

/** The options of a list of sessions. */
export namespace SessionList {
  /** What it is made of. */
  export interface IOptions {
    live: ILiveModel;
    search: SearchModel;
    trans: TranslationBundle;
    execute: Execute;
    onShow: ShowCell;
    /** Somebody goes back to the search box. */
    onLeave: () => void;
  }
}

type IProps = SessionList.IOptions;

function Sessions(props: IProps): JSX.Element {
  const { live, trans } = props;
  const { closed, error, hasMoreClosed, sessions: open } = live;
  const failed = error !== null && (
    <ErrorMessage
      advice={describeError(error, trans)}
      retry={trans.__('Try again')}
      onRetry={() => void live.recover()}
    />
  );
  if (open.length + closed.length === 0) {
    return failed || <NoSessions {...props} />;
  }
  const closedLabel = trans.__(
    'Closed (%1)',
    `${closed.length}${hasMoreClosed ? '+' : ''}`
  );
  return (
    <>
      {failed}
      {open.length > 0 && (
        <SessionItems
          {...props}
          label={trans.__('Agent sessions')}
          sessions={open}
        />
      )}
      {closed.length > 0 && (
        <details
          open={
            open.length === 0 || closed.some(({ id }) => id === live.selected)
          }
        >
          <summary>{closedLabel}</summary>
          <SessionItems {...props} label={closedLabel} sessions={closed} />
          {hasMoreClosed && (
            <button
              type="button"
              className="jp-AgentExec-link"
              onClick={() => void live.loadMore()}
            >
              {trans.__('Show more')}
            </button>
          )}
        </details>
      )}
    </>
  );
}

function NoSessions(props: IProps): JSX.Element {
  const { execute, live, trans } = props;
  if (!live.isReady) {
    return <Message title={trans.__('Loading…')} />;
  }
  return (
    <Message title={trans.__('No agent has worked here yet')}>
      <p>
        {trans.__(
          'Code that agents run on this server appears here as it runs. To try it, enter this in a terminal:'
        )}
      </p>
      {/* Where it is small, keys scroll it. */}
      <code tabIndex={0}>{EXAMPLE}</code>
      <p>
        <button
          type="button"
          className="jp-AgentExec-link"
          onClick={() => void execute(CommandIDs.newToken)}
        >
          {trans.__('Give an Agent Access…')}
        </button>
      </p>
    </Message>
  );
}

function SessionItems({
  label,
  live,
  onShow,
  sessions,
  trans
}: Pick<IProps, 'live' | 'onShow' | 'trans'> & {
  label: string;
  sessions: readonly IAgentSession[];
}): JSX.Element {
  return (
    <OptionList
      label={label}
      options={sessions.map(session => {
        const atWork = live.get(session.id);
        return {
          id: session.id,
          className: 'jp-AgentExecSession',
          state: atWork?.pending[0]?.status ?? session.status,
          title: [
            titleText(session),
            whoText(session, trans),
            targetText(session, trans)
          ].join('\n'),
          children: (
            <SessionItem session={session} atWork={atWork} trans={trans} />
          )
        };
      })}
      selected={live.selected}
      onShow={onShow}
    />
  );
}

function iconFor({ close_reason, status }: IAgentSession, does?: IExecution) {
  if (status === 'closed') {
    return close_reason === null || close_reason === 'closed'
      ? sessionIcons.closed
      : sessionIcons.broken;
  }
  return does ? statusIcons[does.status] : sessionIcons.idle;
}

function SessionItem({
  atWork,
  session,
  trans
}: {
  session: IAgentSession;
  /** What of it runs and waits; null if it is closed, or nobody knows. */
  atWork: IAgentAtWork | null;
  trans: TranslationBundle;
}): JSX.Element {
  const { executions, last_activity_at, proposed, status, unreviewed } =
    session;
  const does = atWork?.pending[0];
  const Icon = iconFor(session, does);
  return (
    <>
      <span className="jp-AgentExecSession-title">{titleText(session)}</span>
      <span className="jp-AgentExecSession-state">
        <Icon.react tag="span" className="jp-AgentExec-icon" />
        {status === 'closed'
          ? trans.__('Closed')
          : does?.status === 'running'
            ? statusWord(does.status, trans)
            : atWork && doingText({ current: does ?? null }, trans)}
      </span>
      <span className="jp-AgentExecSession-agent">
        <Words words={[besideTitle(session), targetText(session, trans)]} />
      </span>
      <time dateTime={last_activity_at}>
        {momentText(last_activity_at, Date.now())}
      </time>
      {/* How many cells there are, and how many want something of a person. */}
      <span className="jp-AgentExecSession-counts">
        <Words
          words={[
            shortText(credentialWord(session.token, trans)),
            executions > 0 ? trans._n('%1 cell', '%1 cells', executions) : '',
            proposed > 0
              ? trans._n('%1 change proposed', '%1 changes proposed', proposed)
              : '',
            unreviewed > 0 ? trans.__('%1 unreviewed', unreviewed) : ''
          ]}
        />
      </span>
    </>
  );
}
