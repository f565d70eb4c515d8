/** The images of the chosen session, or of what was searched for. */
import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message as LuminoMessage } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';
import type { GalleryModel } from '../model/gallery';
import { pictureKey, pictureName, readPicture } from '../model/pictures';
import type { IActivityModel, IRecordedImage } from '../tokens';
import { download } from './download';
import { element } from './elements';
import type { ShowCell } from './find';
import { describeError, imageText } from './wording';
import { ErrorMessage, Message } from './message';
import { MoreButton } from './more';
import { usePicture } from './pictures';

/** How far out of sight, in heights of what is in sight, images are kept. */
const MARGIN = '100% 0px';

/** A grid of images; its model is active while it can be seen. */
export class Gallery extends ReactWidget {
  constructor(private readonly _options: Gallery.IOptions) {
    super();
    this.addClass('jp-AgentExecGallery');
    this.title.label = _options.trans.__('Images');
  }

  protected override onBeforeShow(msg: LuminoMessage): void {
    super.onBeforeShow(msg);
    this._options.gallery.isActive = true;
  }

  protected override onAfterHide(msg: LuminoMessage): void {
    super.onAfterHide(msg);
    this._options.gallery.isActive = false;
  }

  protected override onAfterAttach(msg: LuminoMessage): void {
    super.onAfterAttach(msg);
    this._options.gallery.isActive = this.isVisible;
  }

  protected override onBeforeDetach(msg: LuminoMessage): void {
    this._options.gallery.isActive = false;
    super.onBeforeDetach(msg);
  }

  protected render(): JSX.Element {
    const { gallery } = this._options;
    return (
      <UseSignal signal={gallery.changed}>
        {() => <Images {...this._options} scroller={this.node} />}
      </UseSignal>
    );
  }
}

/** The options of a gallery. */
export namespace Gallery {
  /** What it is made of. */
  export interface IOptions {
    model: IActivityModel;
    gallery: GalleryModel;
    trans: TranslationBundle;
    onShow: ShowCell;
    onError: (error: unknown) => void;
  }
}

interface IProps extends Gallery.IOptions {
  scroller: HTMLElement;
}

function Images(props: IProps): JSX.Element {
  const { gallery, onError, trans } = props;
  const { images, state } = gallery;
  return (
    <>
      {state.phase === 'error' && (
        <ErrorMessage
          advice={describeError(state.error, trans)}
          retry={trans.__('Try again')}
          onRetry={() => gallery.refresh()}
        />
      )}
      {state.phase === 'loading' && <Message title={trans.__('Loading…')} />}
      {state.phase === 'ready' && images.length === 0 && (
        <Message title={trans.__('No images')} />
      )}
      {images.length > 0 && (
        <ul
          role="list"
          aria-label={trans.__('Images')}
          className="jp-AgentExecGallery-grid"
        >
          {images.map(image => (
            <Thumbnail {...props} key={pictureKey(image)} image={image} />
          ))}
        </ul>
      )}
      {gallery.hasMore && (
        <MoreButton
          label={trans.__('Show more')}
          onMore={() => gallery.loadMore()}
          onError={onError}
        />
      )}
    </>
  );
}

function Thumbnail(props: IProps & { image: IRecordedImage }): JSX.Element {
  const { image, model, onError, onShow, trans } = props;
  const item = React.useRef<HTMLLIElement>(null);
  const isNear = useNear(item, props.scroller);
  const { error, picture } = usePicture(model.api, isNear ? image : null);
  const text = imageText(image, trans);
  return (
    <li ref={item} className="jp-AgentExecThumbnail">
      <button
        type="button"
        className="jp-AgentExecThumbnail-picture"
        aria-label={trans.__('Image of %1', text)}
        onClick={() => void openImage(props).catch(onError)}
      >
        {picture && <img src={picture.url} alt="" decoding="async" />}
        {error !== undefined && trans.__('Cannot be shown')}
      </button>
      <button
        type="button"
        className="jp-AgentExec-link"
        aria-label={trans.__('Go to %1', text)}
        onClick={() => onShow(image.session_id, image.execution_id)}
      >
        {props.gallery.isOfSearch ? text : trans.__('Cell %1', image.seq)}
      </button>
    </li>
  );
}

/** Whether an element is in sight, or not far from it. */
function useNear(
  element: React.RefObject<HTMLElement>,
  scroller: HTMLElement
): boolean {
  const [isNear, setNear] = React.useState(false);
  React.useEffect(() => {
    const observer = new IntersectionObserver(
      entries => setNear(entries[entries.length - 1].isIntersecting),
      { root: scroller, rootMargin: MARGIN }
    );
    if (element.current) {
      observer.observe(element.current);
    }
    return () => observer.disconnect();
  }, [element, scroller]);
  return isNear;
}

/** An image as a dialog's body; one that React draws gets the keyboard late. */
function imageBody(url: string, text: string): Widget {
  const body = new Widget();
  const image = element('img', '');
  image.src = url;
  image.alt = text;
  body.node.append(image);
  return body;
}

/** Show images in full size, one after the other, until the user has enough. */
async function openImage({
  gallery,
  image: first,
  model,
  onShow,
  trans
}: Gallery.IOptions & { image: IRecordedImage }): Promise<void> {
  const previous = trans.__('Previous');
  const next = trans.__('Next');
  const goTo = trans.__('Go to the cell');
  const save = trans.__('Save');
  const close = trans.__('Close');
  let image = first;
  let pressed = close;
  do {
    const key = pictureKey(image);
    const at = gallery.images.findIndex(each => pictureKey(each) === key);
    const hasNext = at + 1 < gallery.images.length || gallery.hasMore;
    const labels = [
      ...(at > 0 ? [previous] : []),
      ...(hasNext ? [next] : []),
      goTo,
      save,
      close
    ];
    const { signal } = new AbortController();
    const picture = await readPicture(model.api, image, signal);
    const dialog = new Dialog({
      title: imageText(image, trans),
      body: imageBody(picture.url, imageText(image, trans)),
      buttons: labels.map(label =>
        Dialog.createButton({ label, accept: label !== close })
      ),
      defaultButton: Math.max(labels.indexOf(pressed), 0)
    });
    dialog.addClass('jp-AgentExecImage');
    pressed = (await dialog.launch()).button.label;
    picture.release();
    if (pressed === goTo) {
      onShow(image.session_id, image.execution_id);
    } else if (pressed === save) {
      download(picture.blob, pictureName(image));
    } else if (pressed === previous) {
      image = gallery.images[at - 1] ?? image;
    } else if (pressed === next) {
      if (at + 1 === gallery.images.length) {
        await gallery.loadMore();
      }
      image = gallery.images[at + 1] ?? image;
    }
  } while (pressed === previous || pressed === next);
}
