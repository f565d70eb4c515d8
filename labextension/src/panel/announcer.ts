/** Tells those who listen to the page which cells have finished. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { Coalescer } from '../live/coalescer';
import type { IExecution } from '../tokens';
import { cellName } from '../ui/wording';

/** Milliseconds between two announcements. */
const REST = 3000;

/** What to say of executions that have finished. */
export function announcement(
  finished: readonly IExecution[],
  trans: TranslationBundle
): string {
  const failed = finished.filter(({ status }) => status !== 'ok').length;
  return finished.length === 1
    ? cellName(finished[0], trans)
    : trans.__('Cells finished: %1, failed: %2', finished.length, failed);
}

/** A polite live region: several at once are told in one sentence. */
export class Announcer extends Widget {
  constructor(private readonly _trans: TranslationBundle) {
    super();
    this.addClass('jp-AgentExec-visuallyHidden');
    this.node.setAttribute('role', 'status');
    this.node.setAttribute('aria-live', 'polite');
    this._telling = new Coalescer(async () => this._tell(), REST);
  }

  override dispose(): void {
    this._telling.dispose();
    super.dispose();
  }

  /** An execution has finished. */
  add(execution: IExecution): void {
    this._finished.push(execution);
    this._telling.request();
  }

  private _tell(): void {
    this.node.textContent = announcement(this._finished, this._trans);
    this._finished = [];
  }

  private _finished: IExecution[] = [];
  private readonly _telling: Coalescer;
}
