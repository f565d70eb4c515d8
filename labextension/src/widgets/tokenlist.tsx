/** The agent tokens that there are, and the buttons that take them back. */
import { Dialog } from '@jupyterlab/apputils';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { standing } from '../model/agenttokens';
import type { AgentTokens } from '../model/agenttokens';
import type { IAgentToken } from '../tokens';
import { Clock } from './clock';
import { FormDialog } from './formdialog';
import { ErrorMessage, Message } from './message';
import { plainName } from './notebookwording';
import {
  approvalChoice,
  capLines,
  editChoice,
  endText,
  scopeLines,
  usedText
} from './tokenwording';
import { describeError, momentText } from './wording';
import type { IAdvice } from './wording';

/**
 * Show tokens, which are disposed then; whether the person wants to give
 * another.
 */
export async function showTokens(
  tokens: AgentTokens,
  trans: TranslationBundle
): Promise<boolean> {
  const dialog = new FormDialog({
    title: trans.__('Agent Tokens'),
    body: new TokenList(tokens, trans),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Close') }),
      Dialog.okButton({ label: trans.__('Give an agent access…') })
    ],
    accept: () => Promise.resolve(true)
  });
  const { button } = await dialog.launch();
  return button.accept;
}

/** The list. */
class TokenList extends ReactWidget {
  constructor(
    private readonly _tokens: AgentTokens,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecTokens');
    this._clock.set(this, true);
    _tokens.refresh();
  }

  override dispose(): void {
    this._clock.dispose();
    this._tokens.dispose();
    super.dispose();
  }

  /** Say anew what is over, and how long ago. */
  tick(): void {
    this.update();
  }

  protected render(): JSX.Element {
    const tokens = this._tokens;
    return (
      <UseSignal signal={tokens.changed}>
        {() => (
          <Tokens tokens={tokens} trans={this._trans} now={this._clock.now()} />
        )}
      </UseSignal>
    );
  }

  private readonly _clock = new Clock(() => this._tokens.now());
}

interface IProps {
  tokens: AgentTokens;
  trans: TranslationBundle;
  /** The server's time, in milliseconds. */
  now: number;
}

function Tokens(props: IProps): JSX.Element {
  const { now, tokens, trans } = props;
  const node = React.useRef<HTMLDivElement>(null);
  const focused = node.current?.contains(document.activeElement) ?? false;
  React.useLayoutEffect(() => {
    // What had the keyboard was revoked, here or elsewhere.
    if (focused && !node.current?.contains(document.activeElement)) {
      node.current?.focus();
    }
  });
  const isActive = (token: IAgentToken) => standing(token, now) === 'active';
  const ended = tokens.tokens.filter(token => !isActive(token));
  return (
    <div ref={node} tabIndex={-1}>
      <State {...props} />
      <Items {...props} shown={tokens.tokens.filter(isActive)} />
      {ended.length > 0 && (
        <details>
          <summary>
            {trans._n(
              '%1 expired or revoked token',
              '%1 expired or revoked tokens',
              ended.length,
              ended.length
            )}
          </summary>
          <Items {...props} shown={ended} />
        </details>
      )}
    </div>
  );
}

/** Why there are none, or not as they are now. */
function State({ tokens, trans }: IProps): JSX.Element | null {
  const { state } = tokens;
  if (state.phase === 'error') {
    return (
      <ErrorMessage
        advice={describeError(state.error, trans)}
        retry={trans.__('Try again')}
        onRetry={() => tokens.refresh()}
      />
    );
  }
  if (state.phase === 'loading') {
    return <Message title={trans.__('Loading…')} />;
  }
  return tokens.tokens.length === 0 ? (
    <Message title={trans.__('No agent has a token yet')}>
      <p>
        {trans.__(
          'A token gives an agent access to what you allow, and to nothing else on this server, until the token expires or you revoke it.'
        )}
      </p>
    </Message>
  ) : null;
}

function Items(
  props: IProps & { shown: readonly IAgentToken[] }
): JSX.Element | null {
  const { shown, ...rest } = props;
  return shown.length === 0 ? null : (
    <ul className="jp-AgentExecTokens-list">
      {shown.map(token => (
        <Item key={token.id} token={token} {...rest} />
      ))}
    </ul>
  );
}

function Item(props: IProps & { token: IAgentToken }): JSX.Element {
  const { now, token, trans } = props;
  const status = standing(token, now);
  const lines = [
    ...scopeLines(token.scopes, trans),
    ...(token.approval ? [approvalChoice(token.approval, trans)] : []),
    ...(token.edits ? [editChoice(token.edits, trans)] : []),
    ...capLines(token.caps, trans)
  ];
  return (
    <li className="jp-AgentExecToken" data-status={status}>
      <strong>
        <bdi>{plainName(token.label)}</bdi>
      </strong>
      <ul className="jp-AgentExecToken-scopes">
        {lines.map(line => (
          <li key={line} dir="auto">
            {line}
          </li>
        ))}
      </ul>
      <div className="jp-AgentExecToken-times">
        <span title={momentText(token.expires_at, now)}>
          {endText(token, status, now, trans)}
        </span>
        <span>{usedText(token, now, trans)}</span>
        <span>
          {trans.__(
            'Created by %1, %2',
            plainName(token.username),
            momentText(token.created_at, now)
          )}
        </span>
      </div>
      {status === 'active' && <Revoke {...props} />}
    </li>
  );
}

/** A button that asks once more, in its place. */
function Revoke(props: IProps & { token: IAgentToken }): JSX.Element {
  const { token, trans } = props;
  const [isAsking, setAsking] = React.useState<boolean | null>(null);
  const name = plainName(token.label);
  return isAsking ? (
    <Confirm {...props} name={name} onKeep={() => setAsking(false)} />
  ) : (
    <button
      type="button"
      // Back from the question, the keyboard is where it was before.
      autoFocus={isAsking === false}
      className="jp-mod-styled jp-mod-reject"
      aria-label={trans.__('Revoke %1…', name)}
      onClick={() => setAsking(true)}
    >
      {trans.__('Revoke…')}
    </button>
  );
}

function Confirm(
  props: IProps & { name: string; token: IAgentToken; onKeep: () => void }
): JSX.Element {
  const { token, tokens, trans } = props;
  const [isPending, setPending] = React.useState(false);
  const [advice, setAdvice] = React.useState<IAdvice | null>(null);
  const revoke = async () => {
    setPending(true);
    setAdvice(null);
    try {
      await tokens.revoke(token.id);
    } catch (error) {
      setPending(false);
      setAdvice(describeError(error, trans));
    }
  };
  return (
    <div
      role="group"
      aria-label={trans.__('Revoke %1?', props.name)}
      className="jp-AgentExecToken-asking"
    >
      <p>
        {trans.__(
          'This closes the agent’s sessions at once and interrupts its code. It cannot be undone.'
        )}
      </p>
      <button
        type="button"
        autoFocus={true}
        className="jp-mod-styled jp-mod-reject"
        onClick={props.onKeep}
      >
        {trans.__('Keep')}
      </button>
      <button
        type="button"
        className="jp-mod-styled jp-mod-warn"
        aria-disabled={isPending}
        onClick={() => void (isPending || revoke())}
      >
        {trans.__('Revoke')}
      </button>
      <div role="alert">{advice && `${advice.title}. ${advice.hint}`}</div>
    </div>
  );
}
