/** Small menus of commands that open at a button. */
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import { Menu } from '@lumino/widgets';

/** A command in a menu; `null` is a separator. */
export type MenuItem = {
  command: string;
  args: ReadonlyJSONObject;
} | null;

/** Opens a menu below an element. */
export type OpenMenu = (
  items: readonly MenuItem[],
  anchor: HTMLElement
) => void;

/** A function that opens menus of an application's commands. */
export function menuOpener(commands: CommandRegistry): OpenMenu {
  return (items, anchor) => {
    const menu = new Menu({ commands });
    menu.addClass('jp-AgentExecMenu');
    for (const item of items) {
      menu.addItem(item ? { type: 'command', ...item } : { type: 'separator' });
    }
    menu.aboutToClose.connect(() => {
      anchor.setAttribute('aria-expanded', 'false');
      anchor.focus();
      // The menu still tells its command to run.
      requestAnimationFrame(() => menu.dispose());
    });
    anchor.setAttribute('aria-expanded', 'true');
    const { left, bottom } = anchor.getBoundingClientRect();
    menu.open(left, bottom);
  };
}
