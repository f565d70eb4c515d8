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
    const { id, session_id } = execution;
    const one = { execution_id: id };
    const items: MenuItem[] = [
      { command: CommandIDs.copySource, args: one },
      { command: CommandIDs.insertCells, args: one },
      { command: CommandIDs.runAgain, args: one },
      null,
      {
        command: CommandIDs.insertCells,
        args: {
          session_id,
          from_execution_id: id,
          label: trans.__('Insert All From Here Into My Notebook')
        }
      },
      {
        command: CommandIDs.insertCells,
        args: {
          session_id,
          label: trans.__('Insert All Cells of the Session')
        }
      }
    ];
    const widget = new Widget();
    widget.addClass('jp-AgentExecCell-more');
    widget.node.append(
      menuButton(trans.__('More actions for this cell'), () => items, openMenu)
    );
    return widget;
  };
}
