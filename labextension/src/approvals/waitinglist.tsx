/** At the head of the panel: what waits for the user, and whether agents are paused. */
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { readSource } from '../ui/sourcetext';
import type { Lookalikes } from '../ui/sourcetext';
import { CommandIDs } from '../tokens';
import type { Execute, IExecution, ILiveModel } from '../tokens';
import { GUARD } from './approvalactions';
import {
  brokenText,
  pausedText,
  sinkText,
  untilRestartText
} from './approvalwording';
import { errorIcon, pauseIcon, statusIcons } from '../ui/icons';
import { Words } from '../ui/message';
import { fileName, firstLine } from '../ui/notebookwording';
import { showAsking, showProposed } from './navigation';
import {
  credentialWord,
  nameOf,
  plainName,
  proposedText,
  shortText,
  targetText,
  waitsText,
  whoText
} from '../ui/wording';

/** A list of all that waits, and what a user has to know; it may take no room. */
export class WaitingList extends ReactWidget {
  constructor(private readonly _props: IProps) {
    super();
    this.addClass('jp-AgentExecAsking');
  }

  protected render(): JSX.Element {
    const { edited, changed } = this._props.live;
    return (
      <UseSignal signal={changed}>
        {() => (
          <>
            <Notices {...this._props} />
            <UseSignal signal={edited}>
              {() => <Waiting {...this._props} />}
            </UseSignal>
          </>
        )}
      </UseSignal>
    );
  }
}

interface IProps {
  live: ILiveModel;
  trans: TranslationBundle;
  execute: Execute;
  /** The server's time, in milliseconds. */
  now: () => number;
}

/** That agents are paused, and what fails of the record, which operators have to mend. */
function Notices({ live, now, trans }: IProps): JSX.Element {
  const { broken = null, paused = null, sinks = [] } = live.now ?? {};
  const notice = (Icon: LabIcon, text: string, title?: string | null) => (
    <div
      key={text}
      className="jp-AgentExecAsking-notice"
      title={title ?? undefined}
    >
      <Icon.react tag="span" className="jp-AgentExec-icon" />
      {text}
    </div>
  );
  return (
    <div role="status">
      {paused && notice(pauseIcon, pausedText(paused, now(), trans))}
      {broken &&
        notice(errorIcon, brokenText(broken, trans), broken.found.join('\n'))}
      {sinks.map(sink => notice(errorIcon, sinkText(sink, trans), sink.error))}
    </div>
  );
}

function Waiting(props: IProps): JSX.Element {
  const { execute, live, trans } = props;
  const { asking, inputs, proposing } = live;
  const text = waitsText(live, trans);
  const Icon = statusIcons.awaiting_approval;
  const node = React.useRef<HTMLDivElement>(null);
  const focused = node.current?.contains(document.activeElement) ?? false;
  React.useLayoutEffect(() => {
    // What had the keyboard was decided, here or elsewhere.
    if (focused && !node.current?.contains(document.activeElement)) {
      node.current?.focus();
    }
  });
  const isGuarded = useGuard(asking.map(({ id }) => id).join());
  return (
    <div ref={node} tabIndex={-1}>
      {text && (
        <>
          <h3 id={HEADING}>
            <Icon.react tag="span" className="jp-AgentExec-icon" />
            {text}
          </h3>
          <ul aria-labelledby={HEADING}>
            {asking.map(each => (
              <Line
                key={each.id}
                asked={each}
                trans={trans}
                isGuarded={isGuarded}
                {...lineOfCode(each, props)}
              />
            ))}
            {inputs.map(each => {
              const prompt = each.input?.prompt ?? '';
              const show = () => showAsking(each, execute);
              return (
                <Line
                  key={each.id}
                  asked={each}
                  trans={trans}
                  what={firstLine(prompt) || trans.__('Input')}
                  title={plainName(prompt)}
                  where={whereOf(each, props)}
                  show={show}
                  answers={[[trans.__('Answer'), show]]}
                />
              );
            })}
            {proposing.map(each => {
              const path = each.path ?? '';
              const show = () => showProposed(each, execute);
              return (
                <Line
                  key={each.id}
                  asked={each}
                  trans={trans}
                  what={proposedText(each, trans)}
                  title={plainName(path)}
                  where={fileName(path)}
                  show={show}
                  answers={[[trans.__('Open'), show]]}
                />
              );
            })}
          </ul>
        </>
      )}
    </div>
  );
}

/** Whether buttons answer nothing yet, as what is listed has just changed. */
function useGuard(listed: string): boolean {
  const [seen, setSeen] = React.useState('');
  React.useEffect(() => {
    const timer = setTimeout(() => setSeen(listed), GUARD);
    return () => clearTimeout(timer);
  }, [listed]);
  return seen !== listed;
}

/** What is said in a line, and what can be answered there. */
interface ILine {
  what: string;
  /** How many lines of code there are besides. */
  more?: number;
  /** Whether that is code; if so, whether it is all of it. */
  isWhole?: boolean;
  title: string;
  where: string;
  show: () => void;
  /** The label of each, what it does, and perhaps what else that means. */
  answers: [string, () => void, string?][];
}

/** Code that asks, and the two answers that need no more. */
function lineOfCode(execution: IExecution, props: IProps): ILine {
  const { execute, live, trans } = props;
  const { id, session_id, source_sha256 } = execution;
  const draft = live.draftOf(execution);
  const source = draft ?? execution.source;
  const { also = [], edits_cell = false } = execution.approval ?? {};
  const isAlone = also.length === 0 && !edits_cell;
  const approval = live.get(session_id)?.session.approval;
  const whole = isAlone ? wholeLine(source, execution.lookalikes) : null;
  const show = () => showAsking(execution, execute);
  const args = { execution_id: id, source_sha256, source: draft };
  const lines = source.replace(/\t/g, '    ').split('\n');
  return {
    what: whole ?? firstLine(source),
    more: source.trim().split('\n').length - 1,
    isWhole: whole !== null,
    title: [execution.document?.path ?? [], lines]
      .flat()
      .map(plainName)
      .join('\n'),
    where: whereOf(execution, props),
    show,
    answers: [
      whole === null
        ? [trans.__('View code'), show]
        : [
            trans.__('Approve'),
            () => void execute(CommandIDs.approve, args),
            approval === 'first' ? untilRestartText(trans) : undefined
          ],
      [
        trans.__('Reject'),
        () => void execute(CommandIDs.reject, { execution_id: id })
      ]
    ]
  };
}

/** What waits, where, from whom, and its answers. */
function Line(
  props: ILine & {
    asked: Pick<IExecution, 'agent' | 'id' | 'token'>;
    isGuarded?: boolean;
    trans: TranslationBundle;
  }
): JSX.Element {
  const { asked, isGuarded = false, isWhole, more = 0, trans } = props;
  const id = `jp-agent-exec-asking-${asked.id}`;
  return (
    <li className="jp-AgentExecAsking-line">
      <button
        type="button"
        className="jp-AgentExecAsking-item"
        title={[whoText(asked, trans), props.title].join('\n')}
        onClick={props.show}
      >
        <span className="jp-AgentExecAsking-what">
          {isWhole === undefined ? (
            <span id={id}>{props.what}</span>
          ) : (
            <code id={id} dir="ltr" data-whole={isWhole}>
              {props.what}
            </code>
          )}
          {more > 0 && <span>{trans._n('+%1 line', '+%1 lines', more)}</span>}
        </span>
        <span className="jp-AgentExecAsking-where">
          <Words
            words={[
              props.where,
              shortText(credentialWord(asked.token, trans)),
              nameOf(asked.agent)
            ]}
          />
        </span>
      </button>
      <span className="jp-AgentExecAsking-answers">
        {props.answers.map(([label, act, title]) => (
          <button
            key={label}
            type="button"
            className="jp-AgentExec-link"
            title={title}
            aria-describedby={id}
            aria-disabled={isGuarded}
            onClick={() => isGuarded || act()}
          >
            {label}
          </button>
        ))}
      </span>
    </li>
  );
}

/** Where an execution is about to run, or runs. */
function whereOf(
  { document, session_id }: IExecution,
  { live, trans }: IProps
): string {
  const session = live.get(session_id)?.session;
  return document
    ? fileName(document.path)
    : session
      ? targetText(session, trans)
      : '';
}

/**
 * A source that this list can show as it is, to its last character; null for
 * any other, which is approved only where it is all to be seen.
 */
function wholeLine(source: string, lookalikes: Lookalikes): string | null {
  const text = source.trim();
  const [line, ...more] = readSource(text, lookalikes);
  return more.length === 0 &&
    text.length <= LONGEST_WHOLE &&
    line.every(({ kind }) => kind === 'text')
    ? text
    : null;
}

/** Characters that are shown whole: they wrap where there is little room. */
const LONGEST_WHOLE = 80;

const HEADING = 'jp-agent-exec-asking';
