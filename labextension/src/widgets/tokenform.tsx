/** Where a person writes what an agent may do. */
import { Dialog } from '@jupyterlab/apputils';
import { HTMLSelect, ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { CAPS, isInNotebooks, UNITS } from '../model/tokendraft';
import type { Allowed, DraftField } from '../model/tokendraft';
import type { TokenForm } from '../model/tokenform';
import type { ApprovalMode, IMintedToken } from '../tokens';
import {
  CheckField,
  ChoiceField,
  ComplaintLine,
  Field,
  Fold,
  LinesField,
  TextField,
  TextInput
} from './fields';
import { FormDialog } from './formdialog';
import {
  allowedText,
  approvalChoice,
  approvalMeaning,
  capText,
  complaintText,
  unitText
} from './tokenwording';
import { describeError } from './wording';
import type { IAdvice } from './wording';

/** Before what the ids of fields are called by. */
const ID = 'jp-agent-exec-token';

const INVALID = '[aria-invalid="true"], [data-invalid="true"]';

const ELSEWHERE: readonly Allowed[] = ['files', 'history:read:all'];

const IN_NOTEBOOKS: readonly Allowed[] = [
  'exec:notebook',
  'edit:notebook',
  'read:notebook'
];

const RUNS_CODE: readonly Allowed[] = [
  'exec:scratch',
  'exec:notebook',
  'edit:notebook'
];

const MODES: readonly (ApprovalMode | null)[] = [
  null,
  'first',
  'rules',
  'always',
  'none'
];

const LIFETIMES = Object.keys(UNITS) as (keyof typeof UNITS)[];

/** Ask a person for a token; null if they give none. */
export async function askForToken(
  form: TokenForm,
  trans: TranslationBundle
): Promise<IMintedToken | null> {
  let minted: IMintedToken | null = null;
  const dialog = new FormDialog({
    title: trans.__('Give an Agent Access'),
    body: new TokenFields(form, trans),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Give access') })
    ],
    accept: async () => {
      minted = await form.submit();
      return minted !== null;
    }
  });
  const { button } = await dialog.launch();
  if (!button.accept) {
    form.giveUp();
    return null;
  }
  return minted;
}

/** All fields. */
class TokenFields extends ReactWidget {
  constructor(
    private readonly _form: TokenForm,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecForm');
  }

  protected render(): JSX.Element {
    return (
      <UseSignal signal={this._form.changed}>
        {() => <Fields form={this._form} trans={this._trans} />}
      </UseSignal>
    );
  }
}

interface IProps {
  form: TokenForm;
  trans: TranslationBundle;
}

/** What of a field is the same for each. */
function told(field: DraftField, { form, trans }: IProps) {
  const complaint = form.complaints.get(field);
  return {
    id: `${ID}-${field}`,
    complaint: complaint && complaintText(field, complaint, trans)
  };
}

function Fields(props: IProps): JSX.Element {
  const { form, trans } = props;
  const { draft, failure, isPending, refusals } = form;
  const node = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    // To what is wrong, wherever the keyboard was.
    node.current?.querySelector<HTMLElement>(INVALID)?.focus();
  }, [refusals]);
  return (
    <div ref={node} aria-busy={isPending}>
      <TextField
        {...told('label', props)}
        label={trans.__('Name')}
        hint={trans.__(
          'Your name for this agent or program. It is shown and recorded.'
        )}
        value={draft.label}
        isFirst={true}
        onChange={label => form.set({ label }, 'label')}
      />
      <AllowedFields {...props} />
      <LifetimeField {...props} />
      <ApprovalField {...props} />
      <CapFields {...props} />
      {failure !== null && <Failure advice={describeError(failure, trans)} />}
      <div role="status" className="jp-AgentExecForm-hint">
        {isPending && trans.__('Creating the token…')}
      </div>
    </div>
  );
}

/** What the server refused for a reason that is in no field. */
function Failure({ advice }: { advice: IAdvice }): JSX.Element {
  return (
    <div role="alert" className="jp-AgentExecForm-failure">
      <strong>{advice.title}</strong> {advice.hint}
    </div>
  );
}

function AllowedFields(props: IProps): JSX.Element {
  const { form, trans } = props;
  const { draft } = form;
  const { complaint, id } = told('allowed', props);
  const check = (allowed: Allowed) => (
    <CheckField
      key={allowed}
      label={allowedText(allowed, trans)}
      checked={draft.allowed.has(allowed)}
      onChange={checked => {
        const now = new Set(draft.allowed);
        if (checked) {
          now.add(allowed);
        } else {
          now.delete(allowed);
        }
        form.set({ allowed: now }, 'allowed');
      }}
    />
  );
  return (
    <fieldset
      tabIndex={-1}
      aria-describedby={complaint && `${id}-complaint`}
      data-invalid={complaint !== undefined}
    >
      <legend>{trans.__('What it may do')}</legend>
      {check('exec:scratch')}
      {IN_NOTEBOOKS.map(check)}
      {isInNotebooks(draft) && (
        <LinesField
          {...told('patterns', props)}
          label={trans.__('Which notebooks')}
          hint={trans.__(
            'One path per line. * matches any text in a name, ** matches any folders: reports/**/*.ipynb. An agent that may run code or change cells may also read.'
          )}
          value={draft.patterns}
          onChange={patterns => form.set({ patterns }, 'patterns')}
        />
      )}
      {ELSEWHERE.map(check)}
      {RUNS_CODE.some(each => draft.allowed.has(each)) && (
        <p className="jp-AgentExecForm-hint">
          {trans.__(
            'This restricts what the agent may request, not what its code does. The code can do everything that you can do on the server.'
          )}
        </p>
      )}
      <ComplaintLine id={id} label="" complaint={complaint} />
    </fieldset>
  );
}

function LifetimeField(props: IProps): JSX.Element {
  const { form, trans } = props;
  const { lifetime, unit } = form.draft;
  const field = {
    ...told('lifetime', props),
    label: trans.__('Expires after'),
    hint: trans.__('30 days at most. You can revoke the token at any time.')
  };
  return (
    <Field {...field}>
      <div className="jp-AgentExecForm-row">
        <TextInput
          {...field}
          isNumber={true}
          value={lifetime}
          onChange={value => form.set({ lifetime: value }, 'lifetime')}
        />
        <HTMLSelect
          aria-label={trans.__('Unit of time')}
          value={unit}
          options={LIFETIMES.map(each => ({
            value: each,
            label: unitText(each, trans)
          }))}
          onChange={event => {
            const chosen = event.currentTarget.value as keyof typeof UNITS;
            form.set({ unit: chosen }, 'lifetime');
          }}
        />
      </div>
    </Field>
  );
}

function ApprovalField(props: IProps): JSX.Element {
  const { form, trans } = props;
  const { approval } = form.draft;
  return (
    <ChoiceField
      {...told('approval', props)}
      label={trans.__('What needs your approval')}
      hint={approvalMeaning(approval, trans)}
      value={approval ?? ''}
      options={MODES.map(mode => [mode ?? '', approvalChoice(mode, trans)])}
      onChange={chosen => {
        const mode = (chosen || null) as ApprovalMode | null;
        form.set({ approval: mode }, 'approval');
      }}
    />
  );
}

function CapFields(props: IProps): JSX.Element {
  const { form, trans } = props;
  const { caps } = form.draft;
  const [wanted, setWanted] = React.useState(false);
  const isWrong = CAPS.some(cap => form.complaints.has(`caps.${cap}`));
  return (
    <Fold
      label={trans.__('Limits')}
      isOpen={wanted || isWrong}
      onToggle={() => setWanted(!wanted)}
    >
      <p className="jp-AgentExecForm-hint">
        {trans.__('Leave a field empty to use the server’s limit.')}
      </p>
      {CAPS.map(cap => (
        <TextField
          key={cap}
          {...told(`caps.${cap}`, props)}
          label={capText(cap, trans)}
          isNumber={true}
          value={caps[cap]}
          onChange={value =>
            form.set({ caps: { ...caps, [cap]: value } }, `caps.${cap}`)
          }
        />
      ))}
    </Fold>
  );
}
