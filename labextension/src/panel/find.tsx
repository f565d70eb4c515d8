/** The search box, and the cells that match. */
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  imageIcon,
  InputGroup,
  ReactWidget,
  searchIcon,
  UseSignal
} from '@jupyterlab/ui-components';
import * as React from 'react';
import type { SearchModel } from './search';
import type { ISearchHit } from '../tokens';
import {
  besideTitle,
  cellName,
  describeError,
  foundText,
  momentText,
  snippetParts,
  sourceLine,
  statusWord,
  titleText
} from '../ui/wording';
import { statusIcons, unknownIcon } from '../ui/icons';
import { OptionList } from './list';
import { ErrorMessage, Message } from '../ui/message';

/** Leads to a session, and to one of its executions. */
export type ShowCell = (sessionId: string, executionId?: string) => void;

/** The panel's search box. */
export class FindBar extends ReactWidget {
  constructor(private readonly _options: FindBar.IOptions) {
    super();
    this.addClass('jp-AgentExecFind');
  }

  /** Lead the keyboard to the search box. */
  focusBox(): void {
    this._box.current?.focus();
  }

  protected render(): JSX.Element {
    const { search, trans } = this._options;
    const label = trans.__('Search all agent activity');
    return (
      <UseSignal signal={search.changed}>
        {() => (
          <div role="search" aria-label={trans.__('Agent activity')}>
            <InputGroup
              type="text"
              inputRef={this._box}
              rightIcon={searchIcon}
              spellCheck={false}
              placeholder={label}
              aria-label={label}
              value={search.q}
              onChange={event => {
                search.q = event.currentTarget.value;
              }}
              onKeyDown={this._onKeyDown}
            />
            {search.isSearching && (
              <div role="status" className="jp-AgentExec-visuallyHidden">
                {search.state.phase === 'ready'
                  ? foundText(search.hits, search.hasMore, trans)
                  : ''}
              </div>
            )}
          </div>
        )}
      </UseSignal>
    );
  }

  private _onKeyDown = (event: React.KeyboardEvent): void => {
    const { onGoOn, search } = this._options;
    if (event.key === 'Escape' && search.isSearching) {
      event.preventDefault();
      search.clear();
    } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault();
      onGoOn();
    }
  };

  private readonly _box = React.createRef<HTMLInputElement>();
}

/** The options of the search box. */
export namespace FindBar {
  /** What it is made of. */
  export interface IOptions {
    search: SearchModel;
    trans: TranslationBundle;
    /** Somebody goes on to what was found. */
    onGoOn: () => void;
  }
}

interface IResultsProps {
  search: SearchModel;
  trans: TranslationBundle;
  onShow: ShowCell;
  /** Focus the search box. */
  onLeave: () => void;
}

/** The cells found, or why there are none. */
export function SearchResults(props: IResultsProps): JSX.Element {
  const { onLeave, search, trans } = props;
  const { hits, state } = search;
  if (state.phase === 'error') {
    return (
      <ErrorMessage
        advice={describeError(state.error, trans)}
        retry={trans.__('Try again')}
        onRetry={() => void search.refresh().then(onLeave)}
      />
    );
  }
  if (hits.length === 0) {
    return state.phase === 'loading' ? (
      <Message title={trans.__('Loading…')} />
    ) : (
      <Message title={trans.__('No cell matches')}>
        <button
          type="button"
          className="jp-mod-styled jp-mod-reject"
          onClick={() => {
            search.clear();
            onLeave();
          }}
        >
          {trans.__('Clear the search')}
        </button>
      </Message>
    );
  }
  return (
    <>
      <Hits {...props} />
      {search.hasMore && (
        <Message title={foundText(hits, search.hasMore, trans)} />
      )}
    </>
  );
}

function Hits({ onLeave, onShow, search, trans }: IResultsProps): JSX.Element {
  const [shown, setShown] = React.useState<string | null>(null);
  const { hits, state } = search;
  return (
    <OptionList
      label={trans.__('Search results')}
      isBusy={state.phase === 'loading'}
      options={hits.map(hit => ({
        id: hit.execution_id,
        className: 'jp-AgentExecHit',
        state: hit.status,
        children: <Hit hit={hit} trans={trans} />
      }))}
      selected={shown}
      onEscape={() => {
        search.clear();
        onLeave();
      }}
      onShow={id => {
        setShown(id);
        const hit = hits.find(each => each.execution_id === id)!;
        onShow(hit.session_id, id);
      }}
    />
  );
}

function Hit({
  hit,
  trans
}: {
  hit: ISearchHit;
  trans: TranslationBundle;
}): JSX.Element {
  const Icon = statusIcons[hit.status] ?? unknownIcon;
  const parts = snippetParts(hit.snippet);
  return (
    <>
      <span className="jp-AgentExecHit-title">
        {titleText(hit)}
        {' · '}
        {cellName(hit, trans)}
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
      <span className="jp-AgentExecHit-agent">{besideTitle(hit)}</span>
      <span className="jp-AgentExecHit-detail">
        {hit.images > 0 && (
          <>
            <imageIcon.react tag="span" className="jp-AgentExec-icon" />
            {trans._n('%1 image', '%1 images', hit.images)}
            {' · '}
          </>
        )}
        <time dateTime={hit.accepted_at}>
          {momentText(hit.accepted_at, Date.now())}
        </time>
      </span>
    </>
  );
}
