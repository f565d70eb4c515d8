/** Leads from one of the agents' cells to the next that needs a look. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { isRunAgain, METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { CommandIDs, isFinal } from '../tokens';
import type { ICellRecord, Status } from '../tokens';
import { notebookInFront, reporter, takes } from '../ui/commands';
import type { Reviews } from './reviews';

/** How long a notification stays that there is no such cell. */
const STAY = 5000;

const FAILED: readonly Status[] = ['error', 'timed_out', 'kernel_died', 'lost'];

/** Whether it went wrong; what a person stopped or rejected did not. */
export function hasFailed(status: Status): boolean {
  return FAILED.includes(status);
}

/** One of the agents' cells, after its execution has ended. */
interface IAgentCell {
  readonly id: string;
  readonly record: ICellRecord;
  readonly runAgain: boolean;
}

/** The agents' cells of a notebook: those after the active one first. */
function agentCells({ content }: NotebookPanel): IAgentCell[] {
  const cells = Array.from(content.model?.cells ?? []);
  const first = content.activeCellIndex + 1;
  return [...cells.slice(first), ...cells.slice(0, first)].flatMap(each => {
    const record = readCellRecord(each.getMetadata(METADATA_KEY));
    if (!record || !isFinal(record.status)) {
      return [];
    }
    const { executionCount } = each as ICodeCellModel;
    return [
      { id: each.id, record, runAgain: isRunAgain(record, executionCount) }
    ];
  });
}

/** Add the commands that lead on, in the notebook in front. */
export function addNext(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  reviews: Reviews,
  palette: ICommandPalette | null,
  trans: TranslationBundle
): void {
  const { commands } = app;
  const front = notebookInFront(app, notebooks);
  const add = (
    command: string,
    label: string,
    none: string,
    isWanted: (cell: IAgentCell) => boolean
  ): void => {
    const lead = async (panel: NotebookPanel) => {
      const cells = agentCells(panel);
      await reviews.read(cells.map(({ record }) => record));
      const next = cells.find(isWanted);
      if (next) {
        const path = panel.context.localPath;
        await commands.execute(CommandIDs.goToCell, { path, cell_id: next.id });
      } else {
        const text =
          cells.length > 0 ? none : trans.__('No agent has run a cell here.');
        Notification.info(text, { autoClose: STAY });
      }
    };
    commands.addCommand(command, {
      label,
      describedBy: takes(),
      isEnabled: () => front() !== null,
      execute: async () => {
        const panel = front();
        await (panel && lead(panel).catch(reporter(trans)));
      }
    });
    palette?.addItem({ command, category: trans.__('Agents') });
  };
  add(
    CommandIDs.nextUnreviewed,
    trans.__('Next Unreviewed Agent Cell'),
    trans.__('Every cell that an agent ran here is reviewed.'),
    ({ record }) => !reviews.get(record.execution_id)
  );
  add(
    CommandIDs.nextFailed,
    trans.__('Next Failed Agent Cell'),
    trans.__('No cell that an agent ran here has failed.'),
    ({ record, runAgain }) => !runAgain && hasFailed(record.status)
  );
}
