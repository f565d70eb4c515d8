/** The images of the chosen session, in one row. */
import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Widget } from '@lumino/widgets';
import type { IAgentExecApi, ISessionModel } from '../tokens';
import { download } from './download';
import { element } from '../ui/elements';
import { imageText } from '../ui/wording';
import { pictureKey, pictureName, readPicture, showNear } from './pictures';
import type { ISessionImage } from './pictures';

/** How far out of sight, in widths of what is in sight, images are read. */
const MARGIN = '0px 100%';

/** The images of a session's known executions, in order. */
export function imagesOf({
  executions,
  session
}: ISessionModel): ISessionImage[] {
  return executions.flatMap(({ execution }) =>
    execution.images.flatMap(({ mimetype, output, url }) =>
      url === null
        ? []
        : [
            {
              agent: execution.agent.name,
              execution_id: execution.id,
              mimetype,
              output,
              seq: execution.seq,
              title: session?.title ?? null,
              url
            }
          ]
    )
  );
}

/** A small image, and what ends its reading. */
interface IItem {
  item: HTMLElement;
  shown: IDisposable;
}

/** Small images, one beside the other; no row if there are none. */
export class ImageStrip extends Widget {
  constructor(private readonly _options: ImageStrip.IOptions) {
    super();
    this.addClass('jp-AgentExecImages');
    const { session, trans } = _options;
    this._list.setAttribute('role', 'list');
    this._list.setAttribute('aria-label', trans.__('Images'));
    this.node.append(this._list);
    session.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  override dispose(): void {
    this._items.forEach(({ shown }) => shown.dispose());
    super.dispose();
  }

  private _onChanged(): void {
    const images = imagesOf(this._options.session);
    const { children } = this._list;
    this.setHidden(images.length === 0);
    const keys = images.map(pictureKey);
    images.forEach((image, at) => {
      const { item } = this._items.get(keys[at]) ?? this._createItem(image);
      if (children[at] !== item) {
        this._list.insertBefore(item, children[at] ?? null);
      }
    });
    for (const [key, { item, shown }] of this._items) {
      if (!keys.includes(key)) {
        item.remove(); // it was erased
        shown.dispose();
        this._items.delete(key);
      }
    }
  }

  private _createItem(image: ISessionImage): IItem {
    const { api, onError, trans } = this._options;
    const button = element('button', '');
    button.type = 'button';
    button.title = trans.__('Image of %1', imageText(image, trans));
    button.setAttribute('aria-label', button.title);
    button.addEventListener('click', () => {
      this._open(image).catch(onError);
    });
    const picture = element('img', '');
    picture.alt = '';
    const options = { api, root: this.node, rootMargin: MARGIN };
    const shown = showNear(picture, image, options, () =>
      picture.replaceWith(trans.__('Cannot be shown'))
    );
    button.append(picture);
    const item = element('li', '');
    item.append(button);
    this._items.set(pictureKey(image), { item, shown });
    return { item, shown };
  }

  /** Show an image in full size, and what can be done with it. */
  private async _open(image: ISessionImage): Promise<void> {
    const { api, onShow, trans } = this._options;
    const { signal } = new AbortController();
    const picture = await readPicture(api, image, signal);
    const title = imageText(image, trans);
    const shown = element('img', '');
    shown.src = picture.url;
    shown.alt = title;
    const body = new Widget();
    body.node.append(shown);
    const goTo = Dialog.createButton({ label: trans.__('Go to the cell') });
    const save = Dialog.createButton({ label: trans.__('Save') });
    const close = Dialog.cancelButton({ label: trans.__('Close') });
    const dialog = new Dialog({ title, body, buttons: [goTo, save, close] });
    dialog.addClass('jp-AgentExecImage');
    const { button } = await dialog.launch();
    picture.release();
    if (button === goTo) {
      onShow(image.execution_id);
    } else if (button === save) {
      download(picture.blob, pictureName(image));
    }
  }

  private readonly _items = new Map<string, IItem>();
  private readonly _list = element('ul', '');
}

/** The options of a row of images. */
export namespace ImageStrip {
  /** What it is made of. */
  export interface IOptions {
    session: ISessionModel;
    api: IAgentExecApi;
    trans: TranslationBundle;
    /** Leads to an execution's cell. */
    onShow: (executionId: string) => void;
    onError: (error: unknown) => void;
  }
}
