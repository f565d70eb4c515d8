/** A new token's secret, which is shown only once. */
import { Clipboard, Dialog } from '@jupyterlab/apputils';
import { HTMLSelect, ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { IMintedToken } from '../tokens';
import { FormDialog } from './formdialog';
import { plainName, shortText } from './notebookwording';

/** The command that installs what MCP clients need on the server. */
const INSTALL = "pip install 'jupyter-agent-exec[mcp]'";

/**
 * Show a token until the user presses *Done*.
 *
 * Only this dialog keeps the secret, and it disappears with it.
 */
export async function showSecret(
  minted: IMintedToken,
  trans: TranslationBundle
): Promise<void> {
  const dialog = new FormDialog({
    title: trans.__('Access for %1', shortText(plainName(minted.token.label))),
    body: new SecretView(minted, trans),
    buttons: [Dialog.okButton({ label: trans.__('Done') })],
    hasClose: false,
    accept: () => Promise.resolve(true)
  });
  await dialog.launch();
}

/** The texts to paste into clients, and the token itself. */
class SecretView extends ReactWidget {
  constructor(
    private readonly _minted: IMintedToken,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecSecret');
  }

  protected render(): JSX.Element {
    return <Secret minted={this._minted} trans={this._trans} />;
  }
}

function Secret(props: {
  minted: IMintedToken;
  trans: TranslationBundle;
}): JSX.Element {
  const { minted, trans } = props;
  const { configurations } = minted;
  const [name, choose] = React.useState(configurations[0].name);
  const shown = configurations.find(each => each.name === name)!;
  return (
    <>
      <strong>
        {trans.__('Copy what you need now. The token is not shown again.')}
      </strong>
      <label className="jp-AgentExecForm-field">
        <span>{trans.__('Connect')}</span>
        <HTMLSelect
          value={name}
          options={configurations.map(each => ({
            value: each.name,
            label: each.title
          }))}
          onChange={event => choose(event.currentTarget.value)}
        />
      </label>
      <Copyable
        key={name}
        label={trans.__('Copy')}
        text={shown.text}
        trans={trans}
      />
      {!minted.mcp_installed && (
        <div role="note">
          {trans.__(
            'MCP is not installed on this server, so MCP clients cannot connect yet. Install it there:'
          )}
          <Copyable
            label={trans.__('Copy the command')}
            text={INSTALL}
            trans={trans}
          />
        </div>
      )}
      <div>
        {trans.__('The token alone:')}
        <Copyable
          label={trans.__('Copy the token')}
          text={minted.secret}
          isFirst={true}
          trans={trans}
        />
      </div>
    </>
  );
}

/** A text with a button that copies it. */
function Copyable(props: {
  label: string;
  text: string;
  isFirst?: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { label, text, trans } = props;
  const [copied, setCopied] = React.useState(false);
  return (
    <div className="jp-AgentExecSecret-copyable">
      {/* With the focus, it can be scrolled by keyboard. */}
      <pre tabIndex={0} dir="ltr">
        {text}
      </pre>
      <button
        type="button"
        className="jp-mod-styled jp-mod-accept"
        // Not the button that closes: one key too many would lose the secret.
        autoFocus={props.isFirst}
        onClick={() => {
          Clipboard.copyToSystem(text);
          setCopied(true);
        }}
      >
        {label}
      </button>
      <span role="status">{copied && trans.__('Copied')}</span>
    </div>
  );
}
