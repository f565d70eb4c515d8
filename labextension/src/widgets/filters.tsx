/** The fields that say which sessions and cells a person looks for. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';
import { ANYTHING, countFilters, STATUSES } from '../model/criteria';
import type { ICriteria } from '../model/criteria';
import type { SearchModel } from '../model/search';
import type { IActivityModel, IAgentSession, ITarget } from '../tokens';
import { inOneLine, targetWord } from './findwording';
import { quoted, statusWord } from './wording';

/** The element that offers the names of agents. */
const AGENTS_ID = 'jp-agent-exec-agents';

const TARGETS: readonly ITarget['kind'][] = ['scratch', 'notebook', 'kernel'];

/** All filters. */
export function Filters(props: {
  id: string;
  model: IActivityModel;
  search: SearchModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, search, trans } = props;
  const { criteria } = search;
  const set = (given: Partial<ICriteria>) => {
    search.criteria = { ...search.criteria, ...given };
  };
  const fields = { criteria, set, trans };
  return (
    <div
      id={props.id}
      role="group"
      aria-label={trans.__('Filters')}
      className="jp-AgentExecFilters"
    >
      <UseSignal signal={model.changed}>
        {() => <AgentField {...fields} sessions={model.sessions} />}
      </UseSignal>
      <Choice
        label={trans.__('Where')}
        value={criteria.target}
        options={[
          ['', trans.__('Anywhere')],
          ...TARGETS.map(kind => [kind, targetWord(kind, trans)] as const)
        ]}
        onChange={target => set({ target })}
      />
      <TimeFields {...fields} />
      <SessionFields {...fields} isSearching={search.isSearching} />
      <CellFields {...fields} />
      {countFilters(criteria) > 0 && (
        <button
          type="button"
          className="jp-AgentExec-link"
          onClick={() => {
            search.criteria = { ...ANYTHING, q: criteria.q };
          }}
        >
          {trans.__('Clear filters')}
        </button>
      )}
    </div>
  );
}

interface IFieldProps {
  criteria: ICriteria;
  set: (given: Partial<ICriteria>) => void;
  trans: TranslationBundle;
}

function AgentField(
  props: IFieldProps & { sessions: readonly IAgentSession[] }
): JSX.Element {
  const { criteria, set, trans } = props;
  const names = new Set(props.sessions.map(({ agent }) => agent.name));
  return (
    <label className="jp-AgentExecFilters-field">
      <span>{trans.__('Agent name')}</span>
      <input
        type="text"
        className="jp-mod-styled"
        list={AGENTS_ID}
        spellCheck={false}
        placeholder={trans.__('Anyone')}
        value={criteria.agent}
        onChange={event => set({ agent: event.currentTarget.value })}
      />
      <datalist id={AGENTS_ID}>
        {Array.from(names).map(name => (
          <option key={name} value={name} label={quoted(inOneLine(name))} />
        ))}
      </datalist>
    </label>
  );
}

function TimeFields({ criteria, set, trans }: IFieldProps): JSX.Element {
  const { from, until, when } = criteria;
  return (
    <>
      <Choice
        label={trans.__('When')}
        value={when}
        options={[
          ['', trans.__('Any time')],
          ['today', trans.__('Today')],
          ['week', trans.__('Last 7 days')],
          ['days', trans.__('From … until …')]
        ]}
        onChange={chosen => set({ when: chosen })}
      />
      {when === 'days' && (
        <>
          <Day
            label={trans.__('From')}
            value={from}
            onChange={day => set({ from: day })}
          />
          <Day
            label={trans.__('Until')}
            value={until}
            onChange={day => set({ until: day })}
          />
        </>
      )}
    </>
  );
}

function SessionFields(
  props: IFieldProps & { isSearching: boolean }
): JSX.Element {
  const { criteria, isSearching, set, trans } = props;
  return (
    <fieldset disabled={isSearching}>
      <legend>{trans.__('Sessions')}</legend>
      <Choice
        label={trans.__('State')}
        value={criteria.sessionStatus}
        disabled={isSearching}
        options={[
          ['', trans.__('Any')],
          ['open', trans.__('Open')],
          ['closed', trans.__('Closed')]
        ]}
        onChange={sessionStatus => set({ sessionStatus })}
      />
      <Check
        label={trans.__('Only with unreviewed cells')}
        value={criteria.unreviewed}
        onChange={unreviewed => set({ unreviewed })}
      />
    </fieldset>
  );
}

function CellFields({ criteria, set, trans }: IFieldProps): JSX.Element {
  return (
    <fieldset>
      <legend>{trans.__('Cells')}</legend>
      <Choice
        label={trans.__('Status')}
        value={criteria.status}
        options={[
          ['', trans.__('Any')],
          ...STATUSES.map(each => [each, statusWord(each, trans)] as const)
        ]}
        onChange={status => set({ status })}
      />
      <Choice
        label={trans.__('Review')}
        value={criteria.review}
        options={[
          ['', trans.__('Any')],
          ['none', trans.__('Unreviewed')],
          ['approved', trans.__('Reviewed')],
          ['flagged', trans.__('Flagged')]
        ]}
        onChange={review => set({ review })}
      />
      <Check
        label={trans.__('Only with images')}
        value={criteria.hasImage}
        onChange={hasImage => set({ hasImage })}
      />
    </fieldset>
  );
}

function Choice<T extends string>(props: {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  disabled?: boolean;
  onChange: (value: T) => void;
}): JSX.Element {
  return (
    <label className="jp-AgentExecFilters-field">
      <span>{props.label}</span>
      <HTMLSelect
        value={props.value}
        disabled={props.disabled}
        options={props.options.map(([value, label]) => ({ value, label }))}
        onChange={event => props.onChange(event.currentTarget.value as T)}
      />
    </label>
  );
}

function Day(props: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}): JSX.Element {
  return (
    <label className="jp-AgentExecFilters-field">
      <span>{props.label}</span>
      <input
        type="date"
        className="jp-mod-styled"
        value={props.value}
        onChange={event => props.onChange(event.currentTarget.value)}
      />
    </label>
  );
}

function Check(props: {
  label: string;
  value: boolean;
  onChange: (value: boolean) => void;
}): JSX.Element {
  return (
    <label className="jp-AgentExecFilters-check">
      <input
        type="checkbox"
        checked={props.value}
        onChange={event => props.onChange(event.currentTarget.checked)}
      />
      <span>{props.label}</span>
    </label>
  );
}
