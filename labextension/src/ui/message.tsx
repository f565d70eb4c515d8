/** Sentences in place of content: loading, nothing there, errors. */
import { errorIcon } from './icons';
import * as React from 'react';
import type { IAdvice } from './wording';

/** Something failed, and what helps. */
export function ErrorMessage(props: {
  advice: IAdvice;
  retry: string;
  onRetry: () => void;
}): JSX.Element {
  return (
    <div className="jp-AgentExec-message jp-mod-error" role="alert">
      <div className="jp-AgentExec-messageTitle">
        <errorIcon.react tag="span" className="jp-AgentExec-icon" />
        {props.advice.title}
      </div>
      <div>{props.advice.hint}</div>
      <button
        type="button"
        className="jp-mod-styled jp-mod-reject"
        onClick={props.onRetry}
      >
        {props.retry}
      </button>
    </div>
  );
}

/** A sentence, with more below. */
export function Message(props: {
  title: string;
  children?: React.ReactNode;
}): JSX.Element {
  return (
    <div className="jp-AgentExec-message">
      <div className="jp-AgentExec-messageTitle">{props.title}</div>
      {props.children}
    </div>
  );
}

/** Words beside each other, of which none turns the others. */
export function Words(props: { words: readonly string[] }): JSX.Element {
  return (
    <>
      {props.words.filter(Boolean).map((word, at) => (
        <React.Fragment key={at}>
          {at > 0 && ' · '}
          <bdi>{word}</bdi>
        </React.Fragment>
      ))}
    </>
  );
}
