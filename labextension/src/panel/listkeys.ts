/** The keys that lead through a list of options. */

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
