/** The way out of a feed, as the ARIA feed pattern has it. */

const TABBABLE =
  'a[href], button:not([disabled]), input:not([disabled]), ' +
  'select:not([disabled]), textarea:not([disabled]), summary, [tabindex]';

/** Lead the keyboard to what comes before a feed, or after it, if there is any. */
export function leaveFeed(feed: HTMLElement, after: boolean): void {
  const side = after
    ? Node.DOCUMENT_POSITION_FOLLOWING
    : Node.DOCUMENT_POSITION_PRECEDING;
  const found = Array.from(
    document.querySelectorAll<HTMLElement>(TABBABLE)
  ).filter(
    each =>
      each.tabIndex >= 0 &&
      !feed.contains(each) &&
      each.offsetParent !== null &&
      (feed.compareDocumentPosition(each) & side) !== 0
  );
  const target = after ? found[0] : found[found.length - 1];
  target?.focus();
}
