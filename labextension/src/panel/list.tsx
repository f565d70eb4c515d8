/** A list of options: Tab stops at one of them, and keys lead on from it. */
import * as React from 'react';

/** The option to which a key leads from another. */
export function optionFor(key: string, from: HTMLElement): HTMLElement | null {
  const option = from.closest<HTMLElement>('[role="option"]');
  switch (key) {
    case 'ArrowDown':
      return option?.nextElementSibling as HTMLElement | null;
    case 'ArrowUp':
      return option?.previousElementSibling as HTMLElement | null;
    case 'Home':
      return option?.parentElement?.firstElementChild as HTMLElement | null;
    case 'End':
      return option?.parentElement?.lastElementChild as HTMLElement | null;
    case 'Enter':
    case ' ':
      return option;
    default:
      return null;
  }
}

/** An option, and what stands in it. */
interface IOption extends Pick<
  React.LiHTMLAttributes<HTMLLIElement>,
  'children' | 'className' | 'title'
> {
  id: string;
  /** How it stands, for its looks. */
  state: string;
}

/** The list; what is chosen is shown, and Tab stops there. */
export function OptionList(props: {
  isBusy?: boolean;
  label: string;
  onEscape?: () => void;
  onShow: (id: string) => void;
  options: readonly IOption[];
  selected: string | null;
}): JSX.Element {
  const { onEscape, onShow, options, selected } = props;
  const [at, setAt] = React.useState(selected);
  React.useEffect(() => setAt(selected), [selected]);
  const stop = options.find(({ id }) => id === at) ?? options[0];
  const onKeyDown = (event: React.KeyboardEvent<HTMLUListElement>) => {
    const next = optionFor(event.key, event.target as HTMLElement);
    if (next) {
      event.preventDefault();
      if (event.key === 'Enter' || event.key === ' ') {
        next.click();
      } else {
        next.focus();
      }
    } else if (event.key === 'Escape' && onEscape) {
      event.preventDefault();
      onEscape();
    }
  };
  return (
    <ul
      role="listbox"
      aria-label={props.label}
      aria-busy={props.isBusy}
      className="jp-AgentExecSessions-list"
      onKeyDown={onKeyDown}
    >
      {options.map(({ children, className, id, state, title }) => (
        <li
          key={id}
          role="option"
          aria-selected={id === selected}
          tabIndex={id === stop.id ? 0 : -1}
          className={className}
          data-id={id}
          data-state={state}
          title={title}
          onFocus={() => setAt(id)}
          onClick={() => onShow(id)}
        >
          {children}
        </li>
      ))}
    </ul>
  );
}
