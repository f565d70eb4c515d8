/** A notebook's model that is kept in step with a session. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { PartialJSONObject } from '@lumino/coreutils';
import { Poll } from '@lumino/polling';
import type { Change } from '../api/changes';
import type { IAgentExecApi } from '../api/client';
import type { Events } from '../api/events';
import { outputChanges } from '../api/outputs';
import { isFinal, isRunning } from '../wire';
import type {
  IActivityEvent,
  IAgentSession,
  IExecution,
  Status
} from '../wire';
import { applyChanges } from './apply';
import { METADATA_KEY } from './cellrecord';
import { Coalescer } from './coalescer';
import { ExecutionModel } from './execution';
import { Follower } from './follower';
import { Listening } from './listening';
import type { LoadState } from './observable';
import { CellOutputs } from './outputs';

/** Cells fetched at once. */
const PAGE = 50;

/** Milliseconds between two looks at the server while much happens. */
const REST = 250;

/** Milliseconds between two drawings of outputs that grow. */
const DRAWING_REST = 100;

/** Milliseconds between two looks while events are silent. */
const RECONCILE_INTERVAL = 30_000;

/** An execution's cell without its outputs. */
function createCell({
  cell,
  execution_count,
  id,
  source
}: IExecution): nbformat.ICodeCell & { id: string } {
  const metadata = { ...cell.metadata };
  // Nothing is trusted because somebody who sends it says so.
  delete metadata.trusted;
  return {
    id,
    cell_type: 'code',
    source,
    metadata,
    outputs: [],
    execution_count
  };
}

/** What is known of a cell that is shown. */
interface IKnown {
  seq: number;
  status: Status;
}

/** What an execution is called in the metadata of its cell. */
interface IMetadata {
  execution_id: string;
  seq: number;
  status: Status;
}

/**
 * Brings into a notebook what a session runs after its export was read.
 *
 * Only cells that are new or have changed are read and drawn: what that costs
 * does not depend on how many there are.
 */
export class LiveNotebook extends Listening {
  constructor(private readonly _options: LiveNotebook.IOptions) {
    super(_options.events, REST);
    this._follower = new Follower(_options.api, () => this.request());
    this._drawing = new Coalescer(async () => this._draw(), DRAWING_REST);
    this._poll = new Poll({
      auto: false,
      factory: async () => this.request(),
      frequency: { interval: RECONCILE_INTERVAL, backoff: false },
      name: 'jupyter-agent-exec:document',
      standby: 'when-hidden'
    });
    this._readShown();
  }

  /** The session; null until the server has told. */
  get session(): IAgentSession | null {
    return this._session;
  }

  get state(): LoadState {
    return this._state;
  }

  /** Whether somebody looks; nothing is fetched while nobody does. */
  get isActive(): boolean {
    return this._isActive;
  }
  set isActive(value: boolean) {
    if (value === this._isActive || this.isDisposed) {
      return;
    }
    this._isActive = value;
    if (value) {
      void this._poll.start(); // it begins with a look
    } else {
      void this._poll.stop();
      this._follower.stop();
    }
  }

  override dispose(): void {
    this._poll.dispose();
    this._drawing.dispose();
    this._follower.dispose();
    this._pending.forEach(each => each.dispose());
    super.dispose();
  }

  /** Note what the export had. */
  private _readShown(): void {
    for (const cell of this._options.model.cells) {
      const { execution_id, seq, status } = cell.getMetadata(
        METADATA_KEY
      ) as IMetadata;
      this._known.set(execution_id, { seq, status });
    }
  }

  protected onEvent(event: IActivityEvent, complete: boolean): void {
    if (event.session_id === this._options.sessionId && event.execution_id) {
      this._touched.add(event.execution_id);
    }
    if (
      this._isActive &&
      (!complete || event.session_id === this._options.sessionId)
    ) {
      this.request();
    }
  }

  protected async read(): Promise<void> {
    if (!this._isActive) {
      return;
    }
    const { api, sessionId } = this._options;
    const touched = this._touched;
    this._touched = new Set();
    try {
      this._session = await api.getSession(sessionId);
      this.emitChanged();
      const start = this._start();
      await this._readAfter(start);
      await this._readTouched(touched, start);
      if (this._state.phase === 'error') {
        this._follower.retry();
      }
      this._setState({ phase: 'ready' });
    } catch (error) {
      touched.forEach(id => this._touched.add(id));
      this._setState({ phase: 'error', error });
    }
    if (this._isActive && !this.isDisposed) {
      this._follower.choose([...this._pending.values()]);
    }
  }

  /** The number after which something may be new. */
  private _start(): number {
    const all = [...this._known.values()];
    const pending = all.filter(({ status }) => !isFinal(status));
    return pending.length > 0
      ? Math.min(...pending.map(({ seq }) => seq)) - 1
      : all.reduce((last, { seq }) => Math.max(last, seq), 0);
  }

  private async _readAfter(start: number): Promise<void> {
    const { api, sessionId } = this._options;
    let after: number | null = start;
    while (after !== null && !this.isDisposed) {
      const list = await api.listExecutions(sessionId, { after, limit: PAGE });
      this._take(list.executions);
      after = list.next_after;
    }
  }

  /** Read those that changed after they had finished, as displays may. */
  private async _readTouched(
    touched: ReadonlySet<string>,
    start: number
  ): Promise<void> {
    for (const id of touched) {
      if ((this._known.get(id)?.seq ?? Infinity) <= start) {
        this._take([await this._options.api.getExecution(id)]);
      }
    }
  }

  /** Take executions as the server tells them. */
  private _take(executions: readonly IExecution[]): void {
    if (this.isDisposed) {
      return;
    }
    if (executions.every(each => this._isComplete(each))) {
      this._append(executions);
      return;
    }
    const changes: Change[] = [];
    for (const execution of executions) {
      const { id, seq, status } = execution;
      const shown = this._known.has(id);
      this._known.set(id, { seq, status });
      const { outputs } = this._follow(execution);
      changes.push(...this._changesFor(execution, outputs, shown));
    }
    this._apply(changes);
  }

  /** Whether a cell is new here, and will not grow. */
  private _isComplete({ id, status }: IExecution): boolean {
    return !this._known.has(id) && isFinal(status);
  }

  /** Add cells all at once, which for a long past takes much less time. */
  private _append(executions: readonly IExecution[]): void {
    const { hold, model } = this._options;
    const { sharedModel } = model;
    for (const { id, seq, status } of executions) {
      this._known.set(id, { seq, status });
    }
    if (executions.length === 0) {
      return;
    }
    const cells = executions.map(each => ({
      ...createCell(each),
      outputs: each.cell.outputs
    }));
    hold(() =>
      sharedModel.transact(
        () => sharedModel.insertCells(sharedModel.cells.length, cells),
        false
      )
    );
  }

  /** The execution with its outputs as they are known best. */
  private _follow(execution: IExecution): {
    outputs: readonly nbformat.IOutput[];
  } {
    const { id, status } = execution;
    const known = this._pending.get(id);
    if (isFinal(status)) {
      known?.dispose();
      this._pending.delete(id);
      return execution.cell;
    }
    if (known && known === this._follower.current) {
      known.setStatus(execution);
      return known;
    }
    if (known) {
      known.set(execution);
      return known;
    }
    const model = new ExecutionModel(execution);
    model.changed.connect(() => this._drawing.request(), this);
    this._pending.set(id, model);
    return model;
  }

  /** Show what the streams have told. */
  private _draw(): void {
    const changes: Change[] = [];
    for (const { execution, outputs } of this._pending.values()) {
      changes.push(...this._changesFor(execution, outputs, true));
    }
    this._apply(changes);
  }

  private _changesFor(
    execution: IExecution,
    outputs: readonly nbformat.IOutput[],
    shown: boolean
  ): Change[] {
    const { cell, execution_count, id: cell_id, source, status } = execution;
    const put: Change = {
      op: 'put',
      cell: createCell(execution),
      at: { after: null, before: null }
    };
    const set: Change = {
      op: 'set_cell',
      cell_id,
      agent_exec: (cell.metadata?.[METADATA_KEY] ?? null) as PartialJSONObject,
      execution_count,
      execution_state: isRunning(status) ? 'running' : 'idle',
      trusted: false
    };
    const before = shown ? this._outputsOf(cell_id) : [];
    const changes = outputChanges(before, outputs);
    return [
      shown ? { op: 'set_source', cell_id, source } : put,
      set,
      ...(changes.length > 0
        ? [{ op: 'set_outputs' as const, cell_id, changes }]
        : [])
    ];
  }

  private _outputsOf(id: string): readonly nbformat.IOutput[] {
    for (const cell of this._options.model.cells) {
      if (cell.id === id) {
        return CellOutputs.of(cell as ICodeCellModel).list;
      }
    }
    return [];
  }

  private _apply(changes: readonly Change[]): void {
    const { hold, model } = this._options;
    if (changes.length > 0 && !this.isDisposed) {
      hold(() => applyChanges(model, changes, { cells: {}, order: null }));
    }
  }

  private _setState(state: LoadState): void {
    this._state = state;
    this.emitChanged();
  }

  private readonly _drawing: Coalescer;
  private readonly _follower: Follower;
  private readonly _known = new Map<string, IKnown>();
  private readonly _pending = new Map<string, ExecutionModel>();
  private readonly _poll: Poll;
  private _isActive = false;
  private _session: IAgentSession | null = null;
  private _state: LoadState = { phase: 'loading' };
  private _touched = new Set<string>();
}

/** The options of a live notebook. */
export namespace LiveNotebook {
  /** What it is made of. */
  export interface IOptions {
    api: IAgentExecApi;
    events: Events;
    /** As the session's export has made it. */
    model: INotebookModel;
    sessionId: string;
    /** Makes a change so that what is in view stays where it is. */
    hold: (change: () => void) => void;
  }
}
