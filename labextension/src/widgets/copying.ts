/** The button in a cell's header that offers what can be taken over. */
import { ellipsesIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import type { CellPart } from './cell';
import type { OpenMenu } from './menu';

/** A part of the panel's cells: a menu of what can be done with one. */
export function copyingPart(
  openMenu: OpenMenu,
  trans: TranslationBundle
): CellPart {
  return ({ execution }) => {
    const { id, session_id } = execution;
    const button = document.createElement('button');
    const label = trans.__('More actions for this cell');
    button.type = 'button';
    button.className = 'jp-AgentExec-iconButton';
    button.title = label;
    button.setAttribute('aria-label', label);
    button.setAttribute('aria-haspopup', 'menu');
    ellipsesIcon.element({ container: button });
    const one = { execution_id: id };
    button.addEventListener('click', () => {
      openMenu(
        [
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
        ],
        button
      );
    });
    const widget = new Widget();
    widget.addClass('jp-AgentExecCell-more');
    widget.node.append(button);
    return widget;
  };
}
