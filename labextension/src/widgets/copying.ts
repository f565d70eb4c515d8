/** The button in a cell's header that offers what can be taken over. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import type { CellPart } from './cell';
import { menuButton } from './menu';
import type { MenuItem, OpenMenu } from './menu';

/** A part of the panel's cells: a menu of what can be done with one. */
export function copyingPart(
  openMenu: OpenMenu,
  trans: TranslationBundle
): CellPart {
  return ({ execution }) => {
    const one = { execution_id: execution.id };
    const items: MenuItem[] = [
      { command: CommandIDs.copySource, args: one },
      { command: CommandIDs.insertCells, args: one },
      { command: CommandIDs.runAgain, args: one }
    ];
    const widget = new Widget();
    widget.addClass('jp-AgentExecCell-more');
    widget.node.append(
      menuButton(trans.__('More actions for this cell'), () => items, openMenu)
    );
    return widget;
  };
}
