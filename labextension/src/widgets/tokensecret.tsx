/** A new token's secret, which is shown this once. */
import { Clipboard, Dialog } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { IMintedToken, ITokenConfiguration } from '../tokens';
import { FormDialog } from './formdialog';
import { plainName, shortText } from './notebookwording';
import { configurationHint, configurationText } from './tokenwording';

/** Before what the ids of tabs are called by. */
const ID = 'jp-agent-exec-secret';

/**
 * Show a token until the person has done with it.
 *
 * It closes by its button only: there is no second look. What it shows is gone
 * with it; nothing here keeps it.
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

/** The token, and what to paste where. */
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

interface IProps {
  minted: IMintedToken;
  trans: TranslationBundle;
}

function Secret({ minted, trans }: IProps): JSX.Element {
  const { configurations, secret } = minted;
  return (
    <>
      <p>
        <strong>
          {trans.__('Copy what you need now. The token is not shown again.')}
        </strong>{' '}
        {trans.__(
          'Anyone who has the token can do what you allowed. Give it only to this agent. If you lose it, revoke it and create another one.'
        )}
      </p>
      <Copyable
        label={trans.__('Copy the token')}
        text={secret}
        isFirst={true}
        trans={trans}
      />
      <Tabs configurations={configurations} trans={trans} />
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
      {/* Where it is wide, keys scroll it. */}
      <pre tabIndex={0} dir="ltr">
        {text}
      </pre>
      <button
        type="button"
        className="jp-mod-styled jp-mod-accept"
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

/** What to paste, for one kind of client at a time. */
function Tabs(props: {
  configurations: readonly ITokenConfiguration[];
  trans: TranslationBundle;
}): JSX.Element {
  const { configurations, trans } = props;
  const [chosen, choose] = React.useState(configurations[0].name);
  const shown =
    configurations.find(({ name }) => name === chosen) ?? configurations[0];
  const onKeyDown = (event: React.KeyboardEvent<HTMLDivElement>) => {
    const next = tabFor(event.key, event.target as HTMLElement);
    if (next) {
      event.preventDefault();
      next.focus();
      choose(next.dataset.name ?? chosen);
    }
  };
  return (
    <>
      <div
        role="tablist"
        aria-label={trans.__('Client configuration')}
        className="jp-AgentExecSecret-tabs"
        onKeyDown={onKeyDown}
      >
        {configurations.map(({ name }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${ID}-${name}`}
            aria-selected={name === shown.name}
            aria-controls={`${ID}-panel`}
            tabIndex={name === shown.name ? 0 : -1}
            data-name={name}
            onClick={() => choose(name)}
          >
            {configurationText(name, trans)}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${ID}-panel`}
        aria-labelledby={`${ID}-${shown.name}`}
      >
        <p>{configurationHint(shown.name, trans)}</p>
        <Copyable
          key={shown.name}
          label={trans.__('Copy')}
          text={shown.text}
          trans={trans}
        />
      </div>
    </>
  );
}

/** The tab to which a key leads from another. */
function tabFor(key: string, from: HTMLElement): HTMLElement | null {
  const tabs = from.parentElement!;
  const isTurned = getComputedStyle(tabs).direction === 'rtl';
  const [forward, back] = isTurned
    ? ['ArrowLeft', 'ArrowRight']
    : ['ArrowRight', 'ArrowLeft'];
  switch (key) {
    case forward:
      return (from.nextElementSibling ?? tabs.firstElementChild) as HTMLElement;
    case back:
      return (from.previousElementSibling ??
        tabs.lastElementChild) as HTMLElement;
    case 'Home':
      return tabs.firstElementChild as HTMLElement;
    case 'End':
      return tabs.lastElementChild as HTMLElement;
    default:
      return null;
  }
}
