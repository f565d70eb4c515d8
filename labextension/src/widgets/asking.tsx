/** At the head of the panel: what asks, and whether agents are paused. */
import {
  ReactWidget,
  runIcon,
  ToolbarButtonComponent,
  UseSignal
} from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { CommandIDs, isProposed } from '../tokens';
import type { Execute, IApprovalsModel, IExecution } from '../tokens';
import { pausedText, sinkText } from './approvalwording';
import { errorIcon, pauseIcon, statusIcons } from './icons';
import { firstLine, shortText } from './notebookwording';
import { credentialWord, needsApprovalText, quoted, whoText } from './wording';

/** A list of all that asks; it takes no room while nothing does. */
export class AskingList extends ReactWidget {
  constructor(private readonly _props: IProps) {
    super();
    this.addClass('jp-AgentExecAsking');
  }

  protected render(): JSX.Element {
    return (
      <UseSignal signal={this._props.approvals.changed}>
        {() => (
          <>
            <Paused {...this._props} />
            <Sinks {...this._props} />
            <Asking {...this._props} />
          </>
        )}
      </UseSignal>
    );
  }
}

/** A button that pauses all agents, and lets them go on. */
export class PauseButton extends ReactWidget {
  constructor(private readonly _props: Omit<IProps, 'now'>) {
    super();
    this.addClass('jp-ToolbarButton');
  }

  protected render(): JSX.Element {
    const { approvals, execute, trans } = this._props;
    const { pause, resume } = CommandIDs;
    return (
      <UseSignal signal={approvals.changed}>
        {() => {
          const { paused } = approvals;
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
  approvals: IApprovalsModel;
  trans: TranslationBundle;
  execute: Execute;
  /** The server's time, in milliseconds. */
  now: () => number;
}

function Paused({ approvals, now, trans }: IProps): JSX.Element {
  const { paused } = approvals;
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

/** What fails of the copies of the record; operators have to mend it. */
function Sinks({ approvals, trans }: IProps): JSX.Element {
  return (
    <div role="status">
      {approvals.sinks.map(sink => (
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

function Asking({ approvals, execute, trans }: IProps): JSX.Element {
  const { asking } = approvals;
  const Icon = statusIcons.awaiting_approval;
  const node = React.useRef<HTMLDivElement>(null);
  const focused = node.current?.contains(document.activeElement) ?? false;
  React.useLayoutEffect(() => {
    // What had the keyboard was decided, here or elsewhere.
    if (focused && !node.current?.contains(document.activeElement)) {
      node.current?.focus();
    }
  });
  const show = (execution: IExecution) => {
    const { document, id, session_id } = execution;
    void (document && isProposed(execution)
      ? execute(CommandIDs.goToProposal, {
          execution_id: id,
          path: document.path
        })
      : execute(CommandIDs.openPanel, { execution_id: id, session_id }));
  };
  return (
    <div ref={node} tabIndex={-1}>
      {asking.length > 0 && (
        <>
          <h3 id={HEADING}>
            <Icon.react tag="span" className="jp-AgentExec-icon" />
            {needsApprovalText(asking.length, trans)}
          </h3>
          <ul aria-labelledby={HEADING}>
            {asking.map(each => (
              <li key={each.id}>
                <button
                  type="button"
                  className="jp-AgentExecAsking-item"
                  onClick={() => show(each)}
                >
                  <bdi title={whoText(each, trans)}>
                    {shortText(credentialWord(each.token, trans))}
                    {' · '}
                    {quoted(shortText(each.agent.name))}
                  </bdi>
                  <code dir="ltr">{firstLine(each.source)}</code>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

const HEADING = 'jp-agent-exec-asking';
