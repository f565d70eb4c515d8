/** Small menus of commands that open at a button. */
import { ellipsesIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import { Menu } from '@lumino/widgets';
import { iconButton } from './elements';

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

/** A button with three dots that opens a menu. */
export function menuButton(
  label: string,
  items: () => readonly MenuItem[],
  openMenu: OpenMenu
): HTMLButtonElement {
  const button = iconButton(ellipsesIcon, label, () =>
    openMenu(items(), button)
  );
  button.setAttribute('aria-haspopup', 'menu');
  return button;
}
