/** At the head of the panel: what waits for the user, and whether agents are paused. */
import { PathExt } from '@jupyterlab/coreutils';
import {
  ReactWidget,
  runIcon,
  ToolbarButtonComponent,
  UseSignal
} from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { readSource } from '../ui/sourcetext';
import type { Lookalikes } from '../ui/sourcetext';
import { CommandIDs } from '../tokens';
import type { Execute, IExecution, ILiveModel } from '../tokens';
import { GUARD } from './approvalactions';
import { brokenText, pausedText, sinkText } from './approvalwording';
import { errorIcon, pauseIcon, statusIcons } from '../ui/icons';
import { Words } from '../ui/message';
import { firstLine, plainName, shortText } from '../ui/notebookwording';
import { showAsking, showProposed } from './showasking';
import {
  credentialWord,
  proposedText,
  quoted,
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
    return (
      <UseSignal signal={this._props.live.changed}>
        {() => (
          <>
            <Paused {...this._props} />
            <Sinks {...this._props} />
            <UseSignal signal={this._props.live.edited}>
              {() => <Waiting {...this._props} />}
            </UseSignal>
          </>
        )}
      </UseSignal>
    );
  }
}

/** A button that pauses all agents, and lets them go on. */
export class PauseButton extends ReactWidget {
  constructor(
    private readonly _props: Pick<IProps, 'live' | 'execute' | 'trans'>
  ) {
    super();
    this.addClass('jp-ToolbarButton');
  }

  protected render(): JSX.Element {
    const { execute, live, trans } = this._props;
    const { pause, resume } = CommandIDs;
    return (
      <UseSignal signal={live.changed}>
        {() => {
          const paused = live.now?.paused;
          return (
            <ToolbarButtonComponent
              icon={paused ? runIcon : pauseIcon}
              label={
                paused ? trans.__('Resume agents') : trans.__('Pause agents')
              }
              onClick={() => void execute(paused ? resume : pause, {})}
            />
          );
        }}
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

function Paused({ live, now, trans }: IProps): JSX.Element {
  const paused = live.now?.paused;
  return (
    <div role="status">
      {paused && (
        <div className="jp-AgentExecAsking-paused">
          <pauseIcon.react tag="span" className="jp-AgentExec-icon" />
          {pausedText(paused, now(), trans)}
        </div>
      )}
    </div>
  );
}

/** What fails of the record's signatures and copies; operators have to mend it. */
function Sinks({ live, trans }: IProps): JSX.Element {
  const { broken = null, sinks = [] } = live.now ?? {};
  return (
    <div role="status">
      {broken && (
        <div
          className="jp-AgentExecAsking-sink"
          title={broken.found.join('\n')}
        >
          <errorIcon.react tag="span" className="jp-AgentExec-icon" />
          {brokenText(broken, trans)}
        </div>
      )}
      {sinks.map(sink => (
        <div
          key={sink.name}
          className="jp-AgentExecAsking-sink"
          title={sink.error ?? undefined}
        >
          <errorIcon.react tag="span" className="jp-AgentExec-icon" />
          {sinkText(sink, trans)}
        </div>
      ))}
    </div>
  );
}

function Waiting(props: IProps): JSX.Element {
  const { asking, inputs, proposing } = props.live;
  const text = waitsText(props.live, props.trans);
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
              <Item
                key={each.id}
                {...props}
                execution={each}
                isGuarded={isGuarded}
              />
            ))}
            {inputs.map(each => (
              <Line
                key={each.id}
                {...props}
                {...each}
                text={
                  firstLine(each.input?.prompt ?? '') || props.trans.__('Input')
                }
                title={[
                  whoText(each, props.trans),
                  plainName(each.input?.prompt ?? '')
                ].join('\n')}
                where={whereOf(each, props)}
                label={props.trans.__('Answer')}
                show={() => showAsking(each, props.execute)}
              />
            ))}
            {proposing.map(each => (
              <Line
                key={each.id}
                {...props}
                {...each}
                text={proposedText(each, props.trans)}
                title={[
                  whoText(each, props.trans),
                  plainName(each.path ?? '')
                ].join('\n')}
                where={fileName(each.path ?? '')}
                label={props.trans.__('Open')}
                show={() => showProposed(each, props.execute)}
              />
            ))}
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

/** Make the buttons that answer what an element says. */
function answers(what: string, isGuarded = false) {
  return (label: string, act: () => void) => (
    <button
      type="button"
      className="jp-AgentExec-link"
      aria-describedby={what}
      aria-disabled={isGuarded}
      onClick={() => isGuarded || act()}
    >
      {label}
    </button>
  );
}

/** What asks, where it would run, and the two answers that need no more. */
function Item(
  props: IProps & { execution: IExecution; isGuarded: boolean }
): JSX.Element {
  const { execute, execution, isGuarded, live, trans } = props;
  const { id, source_sha256 } = execution;
  const draft = live.draftOf(execution);
  const source = draft ?? execution.source;
  const { also = [], edits_cell = false } = execution.approval ?? {};
  const isAlone = also.length === 0 && !edits_cell;
  const whole = isAlone ? wholeLine(source, execution.lookalikes) : null;
  const more = source.trim().split('\n').length - 1;
  const show = () => showAsking(execution, execute);
  const approve = () =>
    void execute(CommandIDs.approve, {
      execution_id: id,
      source_sha256,
      source: draft
    });
  const reject = () => void execute(CommandIDs.reject, { execution_id: id });
  const what = `jp-agent-exec-asking-${id}`;
  const answer = answers(what, isGuarded);
  return (
    <li className="jp-AgentExecAsking-line">
      <button
        type="button"
        className="jp-AgentExecAsking-item"
        title={tooltip(execution, source, trans)}
        onClick={show}
      >
        <span className="jp-AgentExecAsking-what">
          <code id={what} dir="ltr" data-whole={whole !== null}>
            {whole ?? firstLine(source)}
          </code>
          {more > 0 && (
            <span>{trans._n('+%1 line', '+%1 lines', more, more)}</span>
          )}
        </span>
        <Where {...execution} where={whereOf(execution, props)} trans={trans} />
      </button>
      {whole === null
        ? answer(trans.__('View code'), show)
        : answer(trans.__('Approve'), approve)}
      {answer(trans.__('Reject'), reject)}
    </li>
  );
}

/** What waits, and is answered where it is shown. */
function Line(
  props: Pick<IExecution, 'agent' | 'id' | 'token'> & {
    label: string;
    show: () => void;
    text: string;
    title: string;
    trans: TranslationBundle;
    where: string;
  }
): JSX.Element {
  const { id, label, show, text, title } = props;
  const what = `jp-agent-exec-asking-${id}`;
  return (
    <li className="jp-AgentExecAsking-line">
      <button
        type="button"
        className="jp-AgentExecAsking-item"
        title={title}
        onClick={show}
      >
        <span className="jp-AgentExecAsking-what">
          <span id={what}>{text}</span>
        </span>
        <Where {...props} />
      </button>
      {answers(what)(label, show)}
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

/** Where it is about, and who it is from. */
function Where({
  agent,
  token,
  trans,
  where
}: Pick<IExecution, 'agent' | 'token'> & {
  where: string;
  trans: TranslationBundle;
}): JSX.Element {
  return (
    <span className="jp-AgentExecAsking-where">
      <Words
        words={[
          where,
          shortText(credentialWord(token, trans)),
          quoted(shortText(agent.name))
        ]}
      />
    </span>
  );
}

/** The name of a file, as it can stand in a sentence. */
function fileName(path: string): string {
  return plainName(PathExt.basename(path));
}

/** All of what asks; nothing in it is invisible or turns the text around it. */
function tooltip(
  execution: IExecution,
  source: string,
  trans: TranslationBundle
): string {
  const path = execution.document?.path;
  const lines = source.replace(/\t/g, '    ').split('\n');
  return [
    whoText(execution, trans),
    ...[path ?? [], lines].flat().map(plainName)
  ].join('\n');
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
