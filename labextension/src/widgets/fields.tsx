/** Fields of a form, each with its name, what helps, and what is wrong. */
import { HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';

/** What all fields have. */
export interface IFieldProps {
  /** Unique in the page. */
  id: string;
  label: string;
  hint?: string;
  /** What is wrong with what is written. */
  complaint?: string;
}

/** The ids of what describes a field. */
function describedBy({ complaint, hint, id }: IFieldProps): string | undefined {
  const ids = [complaint && `${id}-complaint`, hint && `${id}-hint`];
  return ids.filter(Boolean).join(' ') || undefined;
}

/** What the element in which one writes is given. */
function toldOf(props: IFieldProps) {
  return {
    id: props.id,
    'aria-describedby': describedBy(props),
    'aria-invalid': props.complaint !== undefined
  };
}

/** What is wrong, below a field. */
export function ComplaintLine(props: IFieldProps): JSX.Element {
  return (
    <div id={`${props.id}-complaint`} className="jp-AgentExecForm-complaint">
      {props.complaint}
    </div>
  );
}

function Hint({ hint, id }: IFieldProps): JSX.Element | null {
  return hint ? (
    <div id={`${id}-hint`} className="jp-AgentExecForm-hint">
      {hint}
    </div>
  ) : null;
}

/** A field between its name and what is said of it. */
export function Field(
  props: IFieldProps & { children: React.ReactNode }
): JSX.Element {
  return (
    <div className="jp-AgentExecForm-field">
      <label htmlFor={props.id}>{props.label}</label>
      {props.children}
      <ComplaintLine {...props} />
      <Hint {...props} />
    </div>
  );
}

/** A line of text, or a number. */
export function TextField(
  props: IFieldProps & {
    value: string;
    isNumber?: boolean;
    isFirst?: boolean;
    onChange: (value: string) => void;
  }
): JSX.Element {
  return (
    <Field {...props}>
      <TextInput {...props} />
    </Field>
  );
}

/** The input of a field of text. */
export function TextInput(props: Parameters<typeof TextField>[0]): JSX.Element {
  return (
    <input
      {...toldOf(props)}
      type="text"
      inputMode={props.isNumber ? 'decimal' : undefined}
      className="jp-mod-styled"
      autoComplete="off"
      autoFocus={props.isFirst}
      spellCheck={false}
      value={props.value}
      onChange={event => props.onChange(event.currentTarget.value)}
    />
  );
}

/** Several lines of text. */
export function LinesField(
  props: IFieldProps & { value: string; onChange: (value: string) => void }
): JSX.Element {
  return (
    <Field {...props}>
      <textarea
        {...toldOf(props)}
        className="jp-mod-styled"
        dir="ltr"
        rows={2}
        spellCheck={false}
        value={props.value}
        onChange={event => props.onChange(event.currentTarget.value)}
      />
    </Field>
  );
}

/** One of several. */
export function ChoiceField(
  props: IFieldProps & {
    value: string;
    options: readonly (readonly [string, string])[];
    onChange: (value: string) => void;
  }
): JSX.Element {
  return (
    <Field {...props}>
      <HTMLSelect
        {...toldOf(props)}
        value={props.value}
        options={props.options.map(([value, label]) => ({ value, label }))}
        onChange={event => props.onChange(event.currentTarget.value)}
      />
    </Field>
  );
}

/** Something that is so or not. */
export function CheckField(props: {
  label: string;
  checked: boolean;
  disabled?: boolean;
  onChange: (checked: boolean) => void;
}): JSX.Element {
  return (
    <label className="jp-AgentExecForm-check">
      <input
        type="checkbox"
        checked={props.checked}
        disabled={props.disabled}
        onChange={event => props.onChange(event.currentTarget.checked)}
      />
      <span>{props.label}</span>
    </label>
  );
}

/** More that is not needed as a rule, shown when it is asked for. */
export function Fold(props: {
  label: string;
  isOpen: boolean;
  onToggle: () => void;
  children: React.ReactNode;
}): JSX.Element {
  const id = React.useId();
  return (
    <div className="jp-AgentExecFold">
      <button
        type="button"
        className="jp-AgentExec-link jp-AgentExecFold-button"
        aria-expanded={props.isOpen}
        aria-controls={id}
        onClick={props.onToggle}
      >
        {props.label}
      </button>
      <div id={id} hidden={!props.isOpen}>
        {props.isOpen && props.children}
      </div>
    </div>
  );
}
