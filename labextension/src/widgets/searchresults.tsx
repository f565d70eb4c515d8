/** The cells that match a search. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { imageIcon } from '@jupyterlab/ui-components';
import * as React from 'react';
import type { SearchModel } from '../model/search';
import type { ISearchHit } from '../tokens';
import {
  describeSearchError,
  inOneLine,
  snippetParts,
  sourceLine,
  titleText
} from './findwording';
import { statusIcons, unknownIcon } from './icons';
import { optionFor } from './listkeys';
import { ErrorMessage, Message } from './message';
import { MoreButton } from './more';
import { momentText, quoted, statusWord } from './wording';

/** Leads to an execution. */
export type ShowCell = (sessionId: string, executionId: string) => void;

interface IProps {
  search: SearchModel;
  trans: TranslationBundle;
  onShow: ShowCell;
  /** Somebody goes back to what was there before. */
  onLeave: () => void;
  onError: (error: unknown) => void;
}

/** The cells found, or why there are none. */
export function SearchResults(props: IProps): JSX.Element {
  const { search, trans } = props;
  const { hits, state } = search;
  if (state.phase === 'error') {
    return (
      <ErrorMessage
        advice={describeSearchError(state.error, trans)}
        retry={trans.__('Try again')}
        onRetry={() => void search.refresh().then(props.onLeave)}
      />
    );
  }
  if (hits.length === 0) {
    return state.phase === 'loading' ? (
      <Message title={trans.__('Searching…')} />
    ) : (
      <NothingFound {...props} />
    );
  }
  return (
    <>
      <Hits {...props} />
      {search.hasMore && (
        <MoreButton
          label={trans.__('Show earlier matches')}
          onMore={() => search.loadMore()}
          onError={props.onError}
        />
      )}
    </>
  );
}

function NothingFound({ onLeave, search, trans }: IProps): JSX.Element {
  const clear = () => {
    search.clear();
    onLeave();
  };
  return (
    <Message title={trans.__('No cell matches')}>
      <p>
        {trans.__(
          'The search covers the sources, outputs and errors of all agent executions on this server.'
        )}
      </p>
      <ClearButton label={trans.__('Clear the search')} onClear={clear} />
    </Message>
  );
}

/** Takes back what hides all. */
export function ClearButton(props: {
  label: string;
  onClear: () => void;
}): JSX.Element {
  return (
    <button
      type="button"
      className="jp-mod-styled jp-mod-reject"
      onClick={props.onClear}
    >
      {props.label}
    </button>
  );
}

function Hits({ onLeave, onShow, search, trans }: IProps): JSX.Element {
  const { hits } = search;
  const [at, setAt] = React.useState<string | null>(null);
  const [shown, setShown] = React.useState<string | null>(null);
  const known = hits.some(each => each.execution_id === at);
  const onKeyDown = (event: React.KeyboardEvent<HTMLUListElement>) => {
    const next = optionFor(event.key, event.target as HTMLElement);
    if (next) {
      event.preventDefault();
      if (event.key === 'Enter' || event.key === ' ') {
        next.click();
      } else {
        next.focus();
      }
    } else if (event.key === 'Escape') {
      event.preventDefault();
      search.leave();
      onLeave();
    }
  };
  return (
    <ul
      role="listbox"
      aria-label={trans.__('Cells that match')}
      aria-busy={search.state.phase === 'loading'}
      className="jp-AgentExecSessions-list"
      onKeyDown={onKeyDown}
    >
      {hits.map((each, index) => (
        <Hit
          key={each.execution_id}
          hit={each}
          trans={trans}
          selected={each.execution_id === shown}
          tabStop={known ? each.execution_id === at : index === 0}
          onFocus={() => setAt(each.execution_id)}
          onShow={() => {
            setShown(each.execution_id);
            onShow(each.session_id, each.execution_id);
          }}
        />
      ))}
    </ul>
  );
}

function Hit(props: {
  hit: ISearchHit;
  trans: TranslationBundle;
  selected: boolean;
  tabStop: boolean;
  onFocus: () => void;
  onShow: () => void;
}): JSX.Element {
  const { hit, trans } = props;
  const Icon = statusIcons[hit.status] ?? unknownIcon;
  const parts = snippetParts(hit.snippet);
  return (
    <li
      role="option"
      aria-selected={props.selected}
      tabIndex={props.tabStop ? 0 : -1}
      className="jp-AgentExecHit"
      data-status={hit.status}
      onFocus={props.onFocus}
      onClick={props.onShow}
    >
      <span className="jp-AgentExecHit-title">
        {titleText(hit, trans)}
        {' · '}
        {trans.__('cell %1', hit.seq)}
      </span>
      <span className="jp-AgentExecHit-status jp-AgentExec-status">
        <Icon.react tag="span" className="jp-AgentExec-icon" />
        {statusWord(hit.status, trans)}
      </span>
      <code className="jp-AgentExecHit-source">{sourceLine(hit.source)}</code>
      {parts.length > 0 && (
        <span className="jp-AgentExecHit-snippet">
          {parts.map(({ isMatch, text }, place) =>
            isMatch ? <mark key={place}>{text}</mark> : text
          )}
        </span>
      )}
      <span className="jp-AgentExecHit-agent">
        {quoted(inOneLine(hit.agent))}
      </span>
      <span className="jp-AgentExecHit-detail">
        {hit.images > 0 && (
          <>
            <imageIcon.react tag="span" className="jp-AgentExec-icon" />
            {trans._n('%1 image', '%1 images', hit.images, hit.images)}
            {' · '}
          </>
        )}
        <time dateTime={hit.accepted_at}>
          {momentText(hit.accepted_at, Date.now())}
        </time>
      </span>
    </li>
  );
}
