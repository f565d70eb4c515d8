/** The form in which a user gives an agent access. */
import { Dialog } from '@jupyterlab/apputils';
import { HTMLSelect, ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { IAgentExecApi } from '../api/client';
import { ApiError } from '../api/errors';
import {
  CAPS,
  LIFETIME,
  LIFETIMES,
  requestOf,
  RIGHTS
} from '../model/tokenform';
import type { IApprovalPolicy, IMintedToken, TokenBound } from '../tokens';
import { FormDialog } from './formdialog';
import { plainName } from './notebookwording';
import {
  approvalChoice,
  capText,
  EDIT_MODES,
  editChoice,
  MODES,
  rightsText
} from './tokenwording';
import { describeError, roughly } from './wording';

/** A pattern of notebooks. */
const EXAMPLE = 'reports/**/*.ipynb';

/**
 * Ask the user for a token; null if they give none.
 *
 * @param path - The notebook that is ticked; empty if there is none.
 * @param policy - The server's default; null if it is not known.
 */
export async function askForToken(
  api: TokenForm.IApi,
  path: string,
  trans: TranslationBundle,
  policy: IApprovalPolicy | null = null
): Promise<IMintedToken | null> {
  const form = new TokenForm(api, path, trans, policy);
  const dialog = new FormDialog({
    title: trans.__('Give an Agent Access'),
    body: form,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Give access') })
    ],
    accept: () => form.submit()
  });
  const { button } = await dialog.launch();
  return form.finish(button.accept);
}

/** The form. The browser checks its fields, and the server what they mean. */
class TokenForm extends ReactWidget {
  constructor(
    private readonly _api: TokenForm.IApi,
    private readonly _path: string,
    private readonly _trans: TranslationBundle,
    private readonly _policy: IApprovalPolicy | null
  ) {
    super();
    this.addClass('jp-AgentExecForm');
  }

  /** Ask the server for the token; false if the form must be changed first. */
  async submit(): Promise<boolean> {
    const form = this.node.querySelector('form');
    const wrong = form?.querySelector<HTMLElement>(':invalid');
    if (wrong) {
      this._show(wrong);
    }
    if (this._isPending || !form?.reportValidity()) {
      return false;
    }
    const asked = requestOf(new FormData(form));
    if (asked.scopes.length === 0) {
      const nothing = this._trans.__('Select what the agent may do.');
      return this._refuse(nothing, form.querySelector('[name="scope"]'));
    }
    this._isPending = true;
    this._minting = this._api.mintToken(asked);
    try {
      await this._minting;
      return true;
    } catch (error) {
      return this._explain(error, form);
    } finally {
      this._isPending = false;
    }
  }

  /** The token; null if there is none, or if the user has cancelled. */
  async finish(isAccepted: boolean): Promise<IMintedToken | null> {
    const minted = await this._minting?.catch(() => null);
    if (minted && !isAccepted) {
      // Nobody will see its secret.
      await this._api.revokeToken(minted.token.id);
      return null;
    }
    return minted ?? null;
  }

  protected render(): JSX.Element {
    return (
      <form
        onInput={({ target }) =>
          (target as HTMLElement).removeAttribute('aria-invalid')
        }
        onSubmit={event => event.preventDefault()}
      >
        <Fields path={this._path} policy={this._policy} trans={this._trans} />
        <div role="alert" className="jp-AgentExecForm-failure">
          {this._failure}
        </div>
      </form>
    );
  }

  private _explain(error: unknown, form: HTMLFormElement): false {
    const { hint, title } = describeError(error, this._trans);
    const field = error instanceof ApiError ? error.field : null;
    if (field === null) {
      return this._refuse(`${title}. ${hint}`, null);
    }
    // The field is in sight: its name in the request helps nobody.
    const text = plainName((error as ApiError).message);
    const name = field.startsWith('scopes') ? 'patterns' : field;
    return this._refuse(
      text.replace(`${field}: `, ''),
      form.querySelector(`[name="${name}"]`)
    );
  }

  private _refuse(failure: string, field: HTMLElement | null): false {
    this._failure = failure;
    this.update();
    field?.setAttribute('aria-invalid', 'true');
    this._show(field);
    return false;
  }

  private _show(field: HTMLElement | null): void {
    field?.closest('details')?.setAttribute('open', '');
    field?.focus();
  }

  private _failure = '';
  private _isPending = false;
  private _minting: Promise<IMintedToken> | null = null;
}

/** What the form needs. */
export namespace TokenForm {
  /** The requests that it sends. */
  export type IApi = Pick<IAgentExecApi, 'mintToken' | 'revokeToken'>;
}

interface IProps {
  path: string;
  policy: IApprovalPolicy | null;
  trans: TranslationBundle;
}

function Fields(props: IProps): JSX.Element {
  const { path, trans } = props;
  return (
    <>
      <Labelled label={trans.__('Name')}>
        <input
          name="label"
          className="jp-mod-styled"
          autoComplete="off"
          autoFocus
          required
          maxLength={200}
          pattern=".*\S.*"
          spellCheck={false}
          defaultValue={trans.__('AI agent')}
          onFocus={event => event.currentTarget.select()}
        />
      </Labelled>
      <fieldset>
        <legend>{trans.__('What it may do')}</legend>
        {path && (
          <Check name="notebook" value={path} isChecked>
            {trans.__('Work in %1', plainName(path))}
          </Check>
        )}
        <Check name="scope" value="exec:scratch" isChecked>
          {trans.__('Run code in kernels of its own')}
        </Check>
        <p>{trans.__('Once running, code has your own permissions.')}</p>
      </fieldset>
      <Choice
        label={trans.__('How long')}
        name="expires_in"
        options={LIFETIMES.map(each => [String(each), roughly(each)])}
        initial={String(LIFETIME)}
      />
      <details>
        <summary>{trans.__('More options')}</summary>
        <MoreFields {...props} />
      </details>
    </>
  );
}

function MoreFields({ path, policy, trans }: IProps): JSX.Element {
  const kind = path ? 'notebook' : 'scratch';
  return (
    <>
      <Labelled label={trans.__('Other notebooks, one path per line')}>
        <textarea
          name="patterns"
          className="jp-mod-styled"
          dir="ltr"
          rows={2}
          placeholder={EXAMPLE}
          spellCheck={false}
        />
      </Labelled>
      <Choice
        label={trans.__('In notebooks it may')}
        name="rights"
        options={RIGHTS.map(each => [each, rightsText(each, trans)])}
      />
      <fieldset>
        <legend>{trans.__('Also')}</legend>
        <Check name="scope" value="files">
          {trans.__('Read and write files in the folders where it works')}
        </Check>
        <Check name="scope" value="history:read:all">
          {trans.__('Read the history of all agents')}
        </Check>
      </fieldset>
      <Choice
        label={trans.__('What needs your approval')}
        name="approval"
        options={MODES.map(mode => [
          mode ?? '',
          approvalChoice(mode, trans, policy?.[kind])
        ])}
      />
      <Choice
        label={trans.__('Edits of notebooks')}
        name="edits"
        options={EDIT_MODES.map(mode => [
          mode ?? '',
          editChoice(mode, trans, policy?.edits)
        ])}
      />
      {Object.entries(CAPS).map(([cap, [min, max]]) => (
        <Labelled key={cap} label={capText(cap as TokenBound, trans)}>
          <input
            name={`caps.${cap}`}
            type="number"
            className="jp-mod-styled"
            min={min}
            max={max}
            placeholder={trans.__('Server limit')}
          />
        </Labelled>
      ))}
    </>
  );
}

function Labelled(props: {
  label: string;
  children: React.ReactNode;
}): JSX.Element {
  return (
    <label className="jp-AgentExecForm-field">
      <span>{props.label}</span>
      {props.children}
    </label>
  );
}

function Choice(props: {
  label: string;
  name: string;
  options: readonly (readonly [string, string])[];
  initial?: string;
}): JSX.Element {
  return (
    <Labelled label={props.label}>
      <HTMLSelect
        name={props.name}
        defaultValue={props.initial}
        options={props.options.map(([value, label]) => ({ value, label }))}
      />
    </Labelled>
  );
}

function Check(props: {
  name: string;
  value: string;
  isChecked?: boolean;
  children: React.ReactNode;
}): JSX.Element {
  return (
    <label className="jp-AgentExecForm-check">
      <input
        type="checkbox"
        name={props.name}
        value={props.value}
        defaultChecked={props.isChecked}
      />
      <span>{props.children}</span>
    </label>
  );
}
