/** Where a person says what to look for. */
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  filterListIcon,
  InputGroup,
  ReactWidget,
  searchIcon,
  UseSignal
} from '@jupyterlab/ui-components';
import * as React from 'react';
import { countFilters } from '../model/criteria';
import type { SearchModel } from '../model/search';
import type { IActivityModel } from '../tokens';
import { Filters } from './filters';
import { foundText } from './findwording';

/** The element that the filter button opens. */
const FORM_ID = 'jp-agent-exec-filters';

interface IProps {
  model: IActivityModel;
  search: SearchModel;
  trans: TranslationBundle;
  box: React.RefObject<HTMLInputElement>;
  /** Somebody goes on to what was found. */
  onGoOn: () => void;
}

/** The panel's search box, and the filters that its button opens. */
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
    return <Find {...this._options} box={this._box} />;
  }

  private readonly _box = React.createRef<HTMLInputElement>();
}

/** The options of a search box. */
export namespace FindBar {
  /** What it is made of. */
  export type IOptions = Omit<IProps, 'box'>;
}

function Find(props: IProps): JSX.Element {
  const { model, search, trans } = props;
  const [isOpen, setOpen] = React.useState(false);
  return (
    <UseSignal signal={search.changed}>
      {() => (
        <div role="search" aria-label={trans.__('Agent activity')}>
          <div className="jp-AgentExecFind-row">
            <Box {...props} />
            <FilterButton
              count={countFilters(search.criteria)}
              isOpen={isOpen}
              trans={trans}
              onClick={() => setOpen(!isOpen)}
            />
          </div>
          {isOpen && (
            <Filters id={FORM_ID} model={model} search={search} trans={trans} />
          )}
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

function Box({ box, onGoOn, search, trans }: IProps): JSX.Element {
  const { criteria } = search;
  const onKeyDown = (event: React.KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'Escape' && search.isSearching) {
      event.preventDefault();
      search.leave();
    } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault();
      onGoOn();
    }
  };
  return (
    <InputGroup
      type="text"
      inputRef={box}
      rightIcon={searchIcon}
      spellCheck={false}
      placeholder={trans.__('Search all agent activity')}
      aria-label={trans.__('Search all agent activity')}
      value={criteria.q}
      onChange={event => {
        search.criteria = { ...criteria, q: event.currentTarget.value };
      }}
      onKeyDown={onKeyDown}
    />
  );
}

function FilterButton(props: {
  count: number;
  isOpen: boolean;
  trans: TranslationBundle;
  onClick: () => void;
}): JSX.Element {
  const { count, isOpen, trans } = props;
  const label =
    count === 0
      ? trans.__('Filters')
      : trans._n('Filters: %1 set', 'Filters: %1 set', count, count);
  return (
    <button
      type="button"
      className="jp-AgentExec-iconButton jp-AgentExecFind-button"
      aria-expanded={isOpen}
      aria-controls={isOpen ? FORM_ID : undefined}
      aria-label={label}
      title={label}
      onClick={props.onClick}
    >
      <filterListIcon.react tag="span" className="jp-AgentExec-icon" />
      {count > 0 && <span className="jp-AgentExecFind-count">{count}</span>}
    </button>
  );
}
