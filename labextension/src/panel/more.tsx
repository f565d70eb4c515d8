/** A button that adds to the list above it. */
import * as React from 'react';

/** Asks for more, and leads the keyboard to the first that came. */
export function MoreButton(props: {
  label: string;
  onMore: () => Promise<void>;
  onError: (error: unknown) => void;
}): JSX.Element {
  const { label, onError, onMore } = props;
  const more = async (button: Element) => {
    const list = button.previousElementSibling;
    const known = list?.children.length ?? 0;
    await onMore();
    // The button goes with the last page, so the focus must not stay there.
    const lead = () => {
      const first = list?.children[known] as HTMLElement | undefined;
      if ([button, document.body].includes(document.activeElement!)) {
        (first?.querySelector('button') ?? first)?.focus();
      }
      return first !== undefined;
    };
    if (list !== null && !lead()) {
      // It is not drawn yet.
      const drawn = new MutationObserver(() => lead() && drawn.disconnect());
      drawn.observe(list, { childList: true });
    }
  };
  return (
    <button
      type="button"
      className="jp-AgentExec-link"
      onClick={event => {
        more(event.currentTarget).catch(onError);
      }}
    >
      {label}
    </button>
  );
}
