/** The list of sessions. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
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
import { optionFor } from './listkeys';
import { ErrorMessage, Message, Words } from '../ui/message';

/** What a person types to see the panel at work. */
const EXAMPLE = 'jupyter agent-exec run "1 + 1"';

/** Shows the sessions and lets one be chosen, or the cells that match. */
export class SessionList extends ReactWidget {
  constructor(private readonly _options: SessionList.IOptions) {
    super();
    this.addClass('jp-AgentExecSessions');
    const { live, search } = _options;
    search.changed.connect(this.update, this);
    live.changed.connect(this.update, this);
  }

  /** Lead the keyboard to where it was in the list. */
  focusList(): void {
    this.node
      .querySelector<HTMLElement>('[role="option"][tabindex="0"]')
      ?.focus();
  }

  protected render(): JSX.Element {
    const List = this._options.search.isSearching ? SearchResults : Sessions;
    return <List {...this._options} />;
  }
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
    onError: (error: unknown) => void;
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
  const { selected } = live;
  const listed = sessions.some(({ id }) => id === selected);
  const onKeyDown = (event: React.KeyboardEvent<HTMLUListElement>) => {
    const next = optionFor(event.key, event.target as HTMLElement);
    if (next) {
      event.preventDefault();
      if (event.key === 'Enter' || event.key === ' ') {
        next.click();
      } else {
        next.focus();
      }
    }
  };
  return (
    <ul
      role="listbox"
      aria-label={label}
      className="jp-AgentExecSessions-list"
      onKeyDown={onKeyDown}
    >
      {sessions.map((session, index) => (
        <SessionItem
          key={session.id}
          session={session}
          atWork={live.get(session.id)}
          trans={trans}
          selected={session.id === selected}
          tabStop={listed ? session.id === selected : index === 0}
          onSelect={() => onShow(session.id)}
        />
      ))}
    </ul>
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

function SessionItem(props: {
  session: IAgentSession;
  /** What of it runs and waits; null if it is closed, or nobody knows. */
  atWork: IAgentAtWork | null;
  trans: TranslationBundle;
  selected: boolean;
  tabStop: boolean;
  onSelect: () => void;
}): JSX.Element {
  const { atWork, session, trans, selected } = props;
  const { executions, last_activity_at, proposed, status, unreviewed } =
    session;
  const does = atWork?.pending[0];
  const Icon = iconFor(session, does);
  const title = titleText(session);
  const target = targetText(session, trans);
  return (
    <li
      role="option"
      aria-selected={selected}
      tabIndex={props.tabStop ? 0 : -1}
      className="jp-AgentExecSession"
      data-id={session.id}
      data-state={does?.status ?? status}
      title={[title, whoText(session, trans), target].join('\n')}
      onClick={props.onSelect}
    >
      <span className="jp-AgentExecSession-title">{title}</span>
      <span className="jp-AgentExecSession-state">
        <Icon.react tag="span" className="jp-AgentExec-icon" />
        {status === 'closed'
          ? trans.__('Closed')
          : does?.status === 'running'
            ? statusWord(does.status, trans)
            : atWork && doingText({ current: does ?? null }, trans)}
      </span>
      <span className="jp-AgentExecSession-agent">
        <Words words={[besideTitle(session), target]} />
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
    </li>
  );
}
