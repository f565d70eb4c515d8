/** The list of sessions. */
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { IActivityModel, IAgentSession } from '../tokens';
import { sessionIcons } from './icons';
import { ErrorMessage, Message } from './message';
import {
  agentText,
  describeError,
  momentText,
  sessionTitle,
  sessionWord
} from './wording';

/** What a person types to see the panel at work. */
const EXAMPLE = 'jupyter agent-exec run "1 + 1"';

/** Shows the sessions and lets one be chosen. */
export class SessionList extends ReactWidget {
  constructor(
    private readonly _model: IActivityModel,
    private readonly _trans: TranslationBundle,
    private readonly _onError: (error: unknown) => void
  ) {
    super();
    this.addClass('jp-AgentExecSessions');
    this.title.label = _trans.__('Sessions');
  }

  protected render(): JSX.Element {
    const model = this._model;
    const props = { model, trans: this._trans, onError: this._onError };
    return (
      <UseSignal signal={model.changed}>
        {() => (
          <UseSignal signal={model.selectedChanged}>
            {() => <Sessions {...props} />}
          </UseSignal>
        )}
      </UseSignal>
    );
  }
}

interface IProps {
  model: IActivityModel;
  trans: TranslationBundle;
  onError: (error: unknown) => void;
}

function Sessions({ model, trans, onError }: IProps): JSX.Element {
  const { sessions, state } = model;
  const failed = state.phase === 'error' && (
    <ErrorMessage
      advice={describeError(state.error, trans)}
      retry={trans.__('Try again')}
      onRetry={() => void model.refresh()}
    />
  );
  if (sessions.length === 0) {
    return (
      failed || <NoSessions loading={state.phase === 'loading'} trans={trans} />
    );
  }
  return (
    <>
      {failed}
      <SessionItems model={model} trans={trans} />
      {model.hasMore && (
        <button
          type="button"
          className="jp-AgentExec-link"
          onClick={() => void model.loadMore().catch(onError)}
        >
          {trans.__('Show earlier sessions')}
        </button>
      )}
    </>
  );
}

function NoSessions(props: {
  loading: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { loading, trans } = props;
  if (loading) {
    return <Message title={trans.__('Loading sessions…')} />;
  }
  return (
    <Message title={trans.__('No agent has worked here yet')}>
      <p>
        {trans.__(
          'When an agent runs code on this server, you see here what it runs, as it happens. To try it, type in a terminal:'
        )}
      </p>
      <code>{EXAMPLE}</code>
    </Message>
  );
}

function SessionItems({ model, trans }: Omit<IProps, 'onError'>): JSX.Element {
  const { sessions } = model;
  const selected = model.selected?.id ?? null;
  const listed = sessions.some(({ id }) => id === selected);
  const onKeyDown = (event: React.KeyboardEvent<HTMLUListElement>) => {
    const next = optionFor(event.key, event.target as HTMLElement);
    if (next) {
      event.preventDefault();
      next.focus();
      model.select(next.dataset.id ?? null);
    }
  };
  return (
    <ul
      role="listbox"
      aria-label={trans.__('Agent sessions')}
      className="jp-AgentExecSessions-list"
      onKeyDown={onKeyDown}
    >
      {sessions.map((session, index) => (
        <SessionItem
          key={session.id}
          session={session}
          trans={trans}
          selected={session.id === selected}
          tabStop={listed ? session.id === selected : index === 0}
          onSelect={() => model.select(session.id)}
        />
      ))}
    </ul>
  );
}

/** The option to which a key leads from another. */
function optionFor(key: string, from: HTMLElement): HTMLElement | null {
  const option = from.closest('li');
  switch (key) {
    case 'ArrowDown':
      return option?.nextElementSibling as HTMLElement | null;
    case 'ArrowUp':
      return option?.previousElementSibling as HTMLElement | null;
    case 'Home':
      return option?.parentElement?.firstElementChild as HTMLElement | null;
    case 'End':
      return option?.parentElement?.lastElementChild as HTMLElement | null;
    case 'Enter':
    case ' ':
      return option;
    default:
      return null;
  }
}

function iconFor(session: IAgentSession) {
  if (session.status === 'closed') {
    return session.close_reason === null || session.close_reason === 'closed'
      ? sessionIcons.closed
      : sessionIcons.broken;
  }
  switch (session.kernel?.execution_state) {
    case 'busy':
    case 'starting':
      return sessionIcons.busy;
    case 'dead':
      return sessionIcons.broken;
    default:
      return sessionIcons.idle;
  }
}

/** A name for how a session does, for the style sheet. */
function stateOf(session: IAgentSession): string {
  return session.status === 'closed'
    ? 'closed'
    : (session.kernel?.execution_state ?? 'idle');
}

function SessionItem(props: {
  session: IAgentSession;
  trans: TranslationBundle;
  selected: boolean;
  tabStop: boolean;
  onSelect: () => void;
}): JSX.Element {
  const { session, trans, selected } = props;
  const Icon = iconFor(session);
  const title = sessionTitle(session, trans);
  return (
    <li
      role="option"
      aria-selected={selected}
      tabIndex={props.tabStop ? 0 : -1}
      className="jp-AgentExecSession"
      data-id={session.id}
      data-state={stateOf(session)}
      title={`${title}\n${agentText(session.agent)}`}
      onClick={props.onSelect}
    >
      <span className="jp-AgentExecSession-title">{title}</span>
      <span className="jp-AgentExecSession-state">
        <Icon.react tag="span" className="jp-AgentExec-icon" />
        {sessionWord(session, trans)}
      </span>
      <span className="jp-AgentExecSession-agent">{session.agent.name}</span>
      <span className="jp-AgentExecSession-detail">
        {trans._n(
          '%1 cell',
          '%1 cells',
          session.executions,
          session.executions
        )}
        {' · '}
        <time dateTime={session.last_activity_at}>
          {momentText(session.last_activity_at, Date.now())}
        </time>
      </span>
    </li>
  );
}
