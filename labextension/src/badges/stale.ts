/** Marks the cells of a notebook whose outputs are out of date. */
import { Notification } from '@jupyterlab/apputils';
import type { Cell, CodeCell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { historyIcon } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { isEdited, METADATA_KEY, readCellRecord } from '../api/cellrecord';
import { Coalescer } from '../live/coalescer';
import type { IAgentAtWork, ILiveModel } from '../tokens';
import { iconButton } from '../ui/elements';
import { staleText } from '../ui/notebookwording';
import type { IActivityEvent, IKernelRun, IStaleness } from '../wire';

/** Milliseconds after which the server, too, has heard that the kernel is idle. */
const IDLE_DELAY_MS = 200;

/** Milliseconds between two looks at the server, or two drawings. */
const INTERVAL_MS = 200;

/** Milliseconds for which an explanation is shown. */
const SHOWN = 8000;

/** Reads what ran in a notebook's kernel, and puts a mark beside a cell's input. */
export class StaleMarks implements IDisposable {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _live: ILiveModel,
    private readonly _trans: TranslationBundle
  ) {
    const { content, context, sessionContext } = _panel;
    sessionContext.statusChanged.connect(this._onStatus, this);
    sessionContext.kernelChanged.connect(this._read, this);
    context.model.contentChanged.connect(this._render, this);
    content.activeCellChanged.connect(this._render, this);
    _live.heard.connect(this._onHeard, this);
    _live.missed.connect(this._read, this);
    this._read();
  }

  get isDisposed(): boolean {
    return this._reading.isDisposed;
  }

  dispose(): void {
    Signal.clearData(this);
    this._reading.dispose();
    this._rendering.dispose();
  }

  private _onStatus(_: unknown, status: string): void {
    if (status === 'idle') {
      this._read();
    }
  }

  /** Read what a session ran here, or one of which nothing is known yet. */
  private _onHeard(_: unknown, { session_id: id }: IActivityEvent): void {
    const isHere = this._agents.some(({ session }) => session.id === id);
    if (isHere || (id !== '' && !this._live.get(id))) {
      this._read();
    }
  }

  private _read(): void {
    void this._reading.request();
  }

  /** The agents in the notebook or its kernel. */
  private get _agents(): readonly IAgentAtWork[] {
    return this._live.at(this._panel.context.localPath, this._kernel);
  }

  private get _kernel(): string | null {
    return this._panel.sessionContext.session?.kernel?.id ?? null;
  }

  private async _readRuns(): Promise<void> {
    await new Promise(resolve => setTimeout(resolve, IDLE_DELAY_MS));
    if (this.isDisposed) {
      return;
    }
    const id = this._kernel;
    const isWatched = this._agents.length > 0;
    const isKnown = id === this._kernelId && this._runs.size === 0;
    if (id === null || (isKnown && !isWatched)) {
      return; // nothing ran there while agents used it
    }
    this._kernelId = id;
    try {
      const { runs } = await this._live.api.listKernelRuns(id);
      this._runs = new Map(runs.map(run => [run.execution_count, run]));
    } catch {
      this._runs = new Map(); // nothing is known
    }
    this._render();
  }

  private _render(): void {
    void this._rendering.request();
  }

  private _renderCells(): void {
    for (const cell of this._panel.content.widgets) {
      if (cell.model.type === 'code') {
        this._renderCell(cell as CodeCell);
      }
    }
  }

  private _renderCell(cell: CodeCell): void {
    const stale = this._staleness(cell);
    const text = stale ? staleText(stale, this._trans) : '';
    let mark = this._marks.get(cell);
    if (mark?.title !== text) {
      mark?.remove();
      mark = undefined;
      this._marks.delete(cell);
    }
    if (stale && !cell.inputArea) {
      void cell.ready.then(() => this._render());
    } else if (stale && !mark) {
      mark = iconButton(historyIcon, text, () =>
        Notification.info(text, { autoClose: SHOWN })
      );
      mark.classList.add('jp-AgentExecStale');
      mark.dataset.certain = String(stale.certain);
      mark.dataset.lmSuppressShortcuts = 'true';
      this._marks.set(cell, mark);
      cell.inputArea!.node.append(mark);
    }
    if (mark) {
      mark.tabIndex = cell === this._panel.content.activeCell ? 0 : -1;
    }
  }

  /** Why a cell's outputs are out of date; null if nothing is known of that. */
  private _staleness({ model }: CodeCell): IStaleness | null {
    const { executionCount: count, sharedModel } = model;
    const run = this._runs.get(count ?? 0);
    if (!run || !isEdited(run, sharedModel.getSource())) {
      return run?.stale ?? null;
    }
    const record = readCellRecord(model.getMetadata(METADATA_KEY));
    const certain = run.execution_id !== null;
    return run.execution_id === (record?.execution_id ?? null)
      ? { certain, cause: 'edited', names: [], execution_count: null }
      : null;
  }

  private _kernelId: string | null = null;
  private readonly _marks = new WeakMap<Cell, HTMLButtonElement>();
  private readonly _reading = new Coalescer(
    () => this._readRuns(),
    INTERVAL_MS
  );
  private readonly _rendering = new Coalescer(
    async () => this._renderCells(),
    INTERVAL_MS
  );
  private _runs: ReadonlyMap<number, IKernelRun> = new Map();
}
