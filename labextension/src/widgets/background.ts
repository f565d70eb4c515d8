/** How a page that nobody looks at shows that agents ask for approval. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import type { IExecution } from '../tokens';
import { nameOf } from './atworkwording';
import { plainName, shortText } from './notebookwording';

/** Puts a count before the page's title, whatever JupyterLab makes of it. */
export class TitleCount implements IDisposable {
  constructor() {
    this._plain = this._shown = document.title;
    this._observer.observe(document.head, {
      characterData: true,
      childList: true,
      subtree: true
    });
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this.show(0);
    this._observer.disconnect();
    this._isDisposed = true;
  }

  /** Show how many ask; 0 restores the title. */
  show(count: number): void {
    if (document.title !== this._shown) {
      this._plain = document.title;
    }
    this._count = count;
    this._shown = count > 0 ? `(${count}) ${this._plain}` : this._plain;
    if (document.title !== this._shown) {
      document.title = this._shown;
    }
  }

  private readonly _observer = new MutationObserver(() =>
    this.show(this._count)
  );
  private _count = 0;
  private _isDisposed = false;
  /** The title without our count. */
  private _plain: string;
  /** The title as we set it. */
  private _shown: string;
}

/** The browser's notifications of what asks while the page is hidden. */
export class BrowserNotices {
  /**
   * @param _trans - Translates what is said.
   * @param _open - Opens what asks.
   */
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _open: (execution: IExecution) => void
  ) {}

  /** Notify what is new, and take back what asks no more. */
  follow(asking: readonly IExecution[]): void {
    for (const [id, notice] of Array.from(this._shown)) {
      if (!asking.some(each => each.id === id)) {
        notice?.close();
        this._shown.delete(id);
      }
    }
    for (const execution of asking) {
      if (!this._shown.has(execution.id)) {
        this._shown.set(execution.id, this._notify(execution));
      }
    }
  }

  private _notify(execution: IExecution): Notification | null {
    const isWanted = document.hidden && permission() === 'granted';
    if (!isWanted) {
      return null;
    }
    const { agent, document: place, id, seq } = execution;
    const text = this._trans.__('Agent %1 needs approval', nameOf(agent));
    const notice = new Notification(text, {
      body: place
        ? this._trans.__('Cell %1 in %2', seq, shortText(plainName(place.path)))
        : this._trans.__('Cell %1', seq),
      tag: id
    });
    notice.onclick = () => {
      window.focus();
      notice.close();
      this._open(execution);
    };
    return notice;
  }

  /** The notices of what asks; null for what is shown on the page only. */
  private readonly _shown = new Map<string, Notification | null>();
}

/** Whether the browser lets this page notify; it may have no notifications. */
export function permission(): NotificationPermission {
  return 'Notification' in window ? Notification.permission : 'denied';
}
