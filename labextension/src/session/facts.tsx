/** What there is to know of a session, above its cells. */
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';
import * as React from 'react';
import { hasFailed } from '../review/next';
import { CommandIDs, isFinal } from '../tokens';
import type { Execute, ISessionModel } from '../tokens';
import { ErrorMessage } from '../ui/message';
import { recordPeopleText } from '../ui/notebookwording';
import {
  afterText,
  besideTitle,
  closedText,
  describeError,
  momentText,
  plainName,
  targetText,
  titleText,
  whoText
} from '../ui/wording';

/** Create a widget that is drawn anew when a session has changed. */
export function createSessionPart(
  { changed }: ISessionModel,
  name: string,
  draw: () => JSX.Element | null
): Widget {
  const part = ReactWidget.create(
    <UseSignal signal={changed}>{draw}</UseSignal>
  );
  part.addClass(name);
  return part;
}

/** Title, agent, kernel; errors. */
export function createFacts(props: IProps): Widget {
  const part = createSessionPart(props.model, 'jp-AgentExecFacts', () => (
    <>
      <Description {...props} />
      <State {...props} />
    </>
  ));
  part.node.setAttribute('role', 'group');
  part.node.setAttribute('aria-label', props.trans.__('About this session'));
  return part;
}

interface IStateProps {
  model: ISessionModel;
  trans: TranslationBundle;
}

/** What a session's parts are made of. */
export interface IProps extends IStateProps {
  execute: Execute;
}

/** The notebook in which the session works, and what is recorded there. */
function Place({ model, trans, execute }: IProps): JSX.Element | null {
  const { session } = model;
  if (!session || session.target.kind === 'scratch') {
    return null;
  }
  const { path } = session;
  const recorded = recordPeopleText(session.record_people, trans);
  return (
    <>
      {path === null ? (
        <div>{targetText(session, trans)}</div>
      ) : (
        <div>
          <button
            type="button"
            className="jp-AgentExec-link"
            onClick={() => void execute(CommandIDs.goToCell, { path })}
          >
            <bdi>{plainName(path)}</bdi>
          </button>
        </div>
      )}
      {recorded && <div>{recorded}</div>}
    </>
  );
}

/** How many cells want something of a person; a click leads to the next. */
function Counts({ execute, model, trans }: IProps): JSX.Element | null {
  const ended = model.executions
    .map(({ execution }) => execution)
    .filter(({ status }) => isFinal(status));
  const failed = ended.filter(({ status }) => hasFailed(status)).length;
  const unreviewed = ended.filter(({ review }) => !review).length;
  const { nextFailed, nextUnreviewed } = CommandIDs;
  const counts: [number, string, string][] = [
    [failed, trans.__('%1 failed', failed), nextFailed],
    [unreviewed, trans.__('%1 unreviewed', unreviewed), nextUnreviewed]
  ];
  const shown = counts.filter(([count]) => count > 0);
  return shown.length > 0 ? (
    <div>
      {shown.map(([, text, command], place) => (
        <React.Fragment key={command}>
          {place > 0 && ' · '}
          <button
            type="button"
            className="jp-AgentExec-link"
            onClick={() => void execute(command)}
          >
            {text}
          </button>
        </React.Fragment>
      ))}
    </div>
  ) : null;
}

function Description(props: IProps): JSX.Element | null {
  const { model, trans } = props;
  const { last, session } = model;
  if (!session) {
    return null;
  }
  const closed = model.eventsAfter(last).find(({ type }) => type === 'closed');
  return (
    <div className="jp-AgentExecFacts-description">
      {besideTitle(session) && <h4>{titleText(session)}</h4>}
      <div>
        {[
          whoText(session, trans),
          trans.__('since %1', momentText(session.opened_at, Date.now()))
        ].join(' · ')}
      </div>
      <div>{afterText(model.eventsAfter(0), trans)}</div>
      {session.status === 'closed' && (
        <div>{closedText(session, closed, trans)}</div>
      )}
      <Place {...props} />
      <Counts {...props} />
    </div>
  );
}

/** That cells are still to come, or why they do not. */
function State({ model, trans }: IStateProps): JSX.Element | null {
  const { last, session, state } = model;
  const count = session?.executions ?? 0;
  return state.phase === 'error' ? (
    <ErrorMessage
      advice={describeError(state.error, trans)}
      retry={trans.__('Try again')}
      onRetry={() => model.requestSync(true)}
    />
  ) : state.phase === 'loading' && last < count ? (
    <div>{trans.__('Loading cells: %1 of %2', last, count)}</div>
  ) : null;
}
