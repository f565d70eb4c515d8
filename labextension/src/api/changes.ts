/** What the server and this page say to each other about open notebooks. */
import type * as nbformat from '@jupyterlab/nbformat';
import type { PartialJSONObject } from '@lumino/coreutils';
import type { IOutputChange } from '../wire';

/** After or before a cell; at the end if neither is said, or if it is gone. */
export interface IPosition {
  after: string | null;
  before: string | null;
  /** After the first of these that is there instead; an older server sends none. */
  follows?: readonly string[];
}

/** One step of what is done to a notebook; cells are named by their ids. */
export type Change =
  | { op: 'put'; cell: nbformat.ICell & { id: string }; at: IPosition }
  | { op: 'move'; cell_id: string; at: IPosition }
  | { op: 'delete'; cell_id: string }
  | { op: 'set_source'; cell_id: string; source: string }
  | ISetCell
  | { op: 'set_outputs'; cell_id: string; changes: IOutputChange[] };

/** How an agent's execution stands in its cell. */
export interface ISetCell {
  op: 'set_cell';
  cell_id: string;
  /** The cell's `metadata.agent_exec`, whole; null takes it away. */
  agent_exec: PartialJSONObject | null;
  execution_count: number | null;
  execution_state: 'idle' | 'running';
  trusted: boolean;
}

/** What must hold for changes to be made. They are all made, or none is. */
export interface IExpected {
  /** Cell type and source of cells, by id. */
  cells: { [id: string]: [string, string] };
  /** Execution counts of code cells, by id; an older server sends none. */
  counts?: { [id: string]: number | null };
  /** Ids of all cells; null if they do not matter. */
  order: string[] | null;
}

/** A notebook as it is now, unsaved edits included. */
export interface INotebook {
  cells: nbformat.ICell[];
  nbformat_minor: number;
}

/** What the server asks of a notebook. */
export type NotebookRequest =
  | { id: number; panel: string; op: 'read' }
  | {
      id: number;
      panel: string;
      op: 'apply';
      changes: Change[];
      expected: IExpected;
    }
  | {
      id: number;
      panel: string;
      op: 'name';
      /** The new ids of cells by their old ones. */
      names: { [id: string]: string };
    }
  | { id: number; panel: string; op: 'save' }
  | { id: number; panel: string; op: 'reload' };

/** How it went. */
export interface INotebookReply {
  status: 'ok' | 'moved' | 'gone' | 'read_only' | 'failed';
  notebook?: INotebook;
  message?: string;
}

/** A notebook that this page has open. */
export interface IOpenNotebook {
  panel: string;
  path: string;
  collaborative: boolean;
  dirty: boolean;
  /** Whether all that its file has not is from agents. */
  only_agents: boolean;
  unused_seconds: number;
  /** Whether the page is about to have a kernel for it. */
  kernel_starting: boolean;
  hash: string | null;
}
