/** The notebooks that this page has open, told to the server. */
import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker, Notebook } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import type { ISignal } from '@lumino/signaling';
import type { Channel } from '../api/channel';
import type { NotebookRequest, INotebookReply } from '../api/changes';
import { OpenDocument } from './document';
import type { DocumentPanel } from './document';

/** What a person is about to run. */
interface IScheduled {
  notebook: Pick<Notebook, 'model'>;
  cell: Pick<Cell, 'model'>;
}

/** Milliseconds for which changes are gathered before they are announced. */
const GATHER = 50;

/**
 * Keeps the server told, and hands what it asks to the notebook it is about.
 *
 * It lasts as long as the page.
 */
export class OpenDocuments {
  constructor(options: OpenDocuments.IOptions) {
    const { tracker, contents, channel, scheduled } = options;
    this._contents = contents;
    this._channel = channel;
    channel.opened.connect(this._announce, this);
    channel.asked.connect(this._onAsked, this);
    scheduled.connect(this._onScheduled, this);
    tracker.forEach(panel => this._add(panel));
    tracker.widgetAdded.connect((_, panel) => this._add(panel));
  }

  private _onScheduled(_: unknown, { notebook, cell }: IScheduled): void {
    for (const document of this._documents) {
      if (document.context.model === notebook.model) {
        document.onRun(cell.model);
      }
    }
  }

  /** Take a panel once its notebook has been read. */
  private _add(panel: DocumentPanel): void {
    const { context } = panel;
    void context.ready.then(() => {
      if (context.isDisposed) {
        return;
      }
      // Other drives are not the server's, but for collaboration's.
      const drive = this._contents.driveName(context.path);
      if (drive && !context.model.collaborative) {
        return;
      }
      this._documentOf(panel).addPanel(panel);
      this._channel.connect();
    });
  }

  /** Several views of a notebook share its context. */
  private _documentOf({ context }: DocumentPanel): OpenDocument {
    for (const document of this._documents) {
      if (document.context === context) {
        return document;
      }
    }
    const document = new OpenDocument(context, this._contents);
    this._documents.add(document);
    document.changed.connect(this._gather, this);
    document.disposed.connect(this._onDocumentDisposed, this);
    this._gather();
    return document;
  }

  private _onDocumentDisposed(document: OpenDocument): void {
    this._documents.delete(document);
    this._gather();
  }

  private _onAsked(_: unknown, asked: NotebookRequest): void {
    const document = [...this._documents].find(({ id }) => id === asked.panel);
    const answered = document?.handle(asked) ?? { status: 'gone' };
    if ('then' in answered) {
      void answered.then(each => this._answer(asked, each));
    } else {
      this._answer(asked, answered);
    }
  }

  private _answer({ id }: NotebookRequest, answered: INotebookReply): void {
    if (this._timer !== undefined) {
      this._announce(); // first what it has led to
    }
    this._channel.answer(id, answered);
  }

  private _gather(): void {
    this._timer ??= setTimeout(() => this._announce(), GATHER);
  }

  private _announce(): void {
    clearTimeout(this._timer);
    this._timer = undefined;
    this._channel.announce([...this._documents].map(each => each.shown()));
  }

  private readonly _channel: Channel;
  private readonly _contents: Contents.IManager;
  private readonly _documents = new Set<OpenDocument>();
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

/** The options of the open documents. */
export namespace OpenDocuments {
  /** What they are made of. */
  export interface IOptions {
    tracker: INotebookTracker;
    contents: Contents.IManager;
    channel: Channel;
    /** Tells what a person is about to run, in any notebook. */
    scheduled: ISignal<unknown, IScheduled>;
  }
}
