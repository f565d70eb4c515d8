/** An image of the history in full size. */
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  caretLeftIcon,
  caretRightIcon,
  closeIcon,
  copyIcon,
  downloadIcon,
  ReactWidget,
  UseSignal
} from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import * as React from 'react';
import type { GalleryModel } from '../model/gallery';
import { pictureKey, pictureName } from '../model/pictures';
import type { IPicture } from '../model/pictures';
import type { IActivityModel, IRecordedImage } from '../tokens';
import { download } from './download';
import { imageText, inOneLine } from './findwording';
import { canCopy, copyPicture, usePicture } from './pictures';
import type { ShowCell } from './searchresults';
import { momentText, sizeText } from './wording';

/** A modal dialog that leads through the images of a gallery. */
export class Lightbox extends ReactWidget {
  constructor(private readonly _options: Lightbox.IOptions) {
    super();
  }

  protected render(): JSX.Element {
    const { gallery } = this._options;
    return (
      <UseSignal signal={gallery.changed}>
        {() => <Viewer {...this._options} onClose={() => this.dispose()} />}
      </UseSignal>
    );
  }
}

/** The options of a lightbox. */
export namespace Lightbox {
  /** What it is made of. */
  export interface IOptions {
    model: IActivityModel;
    gallery: GalleryModel;
    trans: TranslationBundle;
    /** The image to begin with. */
    first: string;
    onShow: ShowCell;
    onError: (error: unknown) => void;
  }
}

interface IProps extends Lightbox.IOptions {
  onClose: () => void;
}

/** How an image is laid out: no larger than the room, or pixel by pixel. */
type Zoom = 'fit' | 'actual';

function Viewer(props: IProps): JSX.Element {
  const { gallery, model, trans } = props;
  const dialog = useModal();
  const [at, setAt] = React.useState(props.first);
  const [zoom, setZoom] = React.useState<Zoom>('fit');
  const [said, say] = React.useState('');
  // The list may be read again; what is looked at stays.
  const image = useLast(gallery.images.find(each => pictureKey(each) === at));
  const { error, picture } = usePicture(model.api, image);
  const close = () => dialog.current?.close();
  const go = (to: IRecordedImage | undefined) => {
    if (to) {
      setAt(pictureKey(to));
      say('');
    }
  };
  const steps = useSteps(props, at, go);
  return (
    <dialog
      ref={dialog}
      tabIndex={-1}
      className="jp-AgentExecLightbox"
      aria-label={trans.__('Image')}
      onClose={props.onClose}
      onKeyDown={event => onKeyDown(event, steps)}
    >
      <div className="jp-AgentExecLightbox-bar">
        <Caption image={image} trans={trans} />
        <Actions
          {...props}
          image={image}
          picture={picture ?? null}
          zoom={zoom}
          steps={steps}
          onZoom={setZoom}
          onSay={say}
          onClose={close}
        />
      </div>
      <div
        className="jp-AgentExecLightbox-stage"
        data-zoom={zoom}
        tabIndex={0}
        role="group"
        aria-label={trans.__('Image. Use the arrow keys to scroll it.')}
      >
        {picture && image && (
          <img src={picture.url} alt={imageText(image, trans)} />
        )}
        {error !== undefined && trans.__('The image cannot be shown')}
      </div>
      <div role="status" className="jp-AgentExecLightbox-status">
        {said}
      </div>
    </dialog>
  );
}

/** The dialog is modal as long as it is there. */
function useModal(): React.RefObject<HTMLDialogElement> {
  const dialog = React.useRef<HTMLDialogElement>(null);
  React.useEffect(() => {
    dialog.current?.showModal();
    dialog.current?.focus();
  }, []);
  return dialog;
}

/** A value, or the last one that there was. */
function useLast<T>(value: T | undefined): T | null {
  const last = React.useRef<T | null>(null);
  last.current = value ?? last.current;
  return last.current;
}

/** The ways to the image before and after one; null where there is none. */
interface ISteps {
  back: (() => void) | null;
  forth: (() => void) | null;
}

function useSteps(
  { gallery, onError }: IProps,
  at: string,
  go: (to: IRecordedImage | undefined) => void
): ISteps {
  const { images } = gallery;
  const index = images.findIndex(each => pictureKey(each) === at);
  const forth = async () => {
    if (index + 1 >= images.length) {
      await gallery.loadMore();
    }
    go(gallery.images[index + 1]);
  };
  const isLast = index + 1 >= images.length && !gallery.hasMore;
  return {
    back: index > 0 ? () => go(images[index - 1]) : null,
    forth: isLast ? null : () => void forth().catch(onError)
  };
}

function onKeyDown(
  event: React.KeyboardEvent<HTMLDialogElement>,
  { back, forth }: ISteps
): void {
  const stage = event.target as HTMLElement;
  if (stage.dataset.zoom === 'actual') {
    // There the arrows scroll.
    return;
  }
  const isRTL = getComputedStyle(event.currentTarget).direction === 'rtl';
  switch (event.key) {
    case 'ArrowLeft':
      (isRTL ? forth : back)?.();
      break;
    case 'ArrowRight':
      (isRTL ? back : forth)?.();
      break;
    default:
      return;
  }
  event.preventDefault();
}

/** Which image it is; those who listen hear it when it changes. */
function Caption(props: {
  image: IRecordedImage | null;
  trans: TranslationBundle;
}): JSX.Element {
  const { image, trans } = props;
  if (!image) {
    return <div />;
  }
  const { accepted_at, agent, bytes, height, mimetype, width } = image;
  const size = width && height ? [trans.__('%1 × %2', width, height)] : [];
  return (
    <div className="jp-AgentExecLightbox-caption" aria-live="polite">
      <div className="jp-AgentExecLightbox-title">
        {imageText(image, trans)}
      </div>
      <div className="jp-AgentExecLightbox-facts">
        {[
          inOneLine(agent),
          momentText(accepted_at, Date.now()),
          mimetype.replace('image/', ''),
          ...size,
          sizeText(bytes, trans)
        ].join(' · ')}
      </div>
    </div>
  );
}

interface IActionProps extends IProps {
  image: IRecordedImage | null;
  picture: IPicture | null;
  zoom: Zoom;
  steps: ISteps;
  onZoom: (zoom: Zoom) => void;
  onSay: (text: string) => void;
}

function Actions(props: IActionProps): JSX.Element {
  const { image, onClose, onShow, onZoom, picture, steps, trans, zoom } = props;
  const actual = zoom === 'actual';
  const save = () => picture && image && keep(picture, image);
  const goToCell = () => {
    onClose();
    if (image) {
      onShow(image.session_id, image.execution_id);
    }
  };
  return (
    <div
      role="group"
      aria-label={trans.__('Image')}
      className="jp-AgentExecLightbox-actions"
    >
      <IconButton
        icon={caretLeftIcon}
        label={trans.__('Previous image')}
        onClick={steps.back}
      />
      <IconButton
        icon={caretRightIcon}
        label={trans.__('Next image')}
        onClick={steps.forth}
      />
      <TextButton
        label={trans.__('Actual size')}
        isPressed={actual}
        onClick={() => onZoom(actual ? 'fit' : 'actual')}
      />
      <TextButton label={trans.__('Go to the cell')} onClick={goToCell} />
      <IconButton
        icon={copyIcon}
        label={trans.__('Copy the image')}
        onClick={picture && (() => void copy(picture, props))}
      />
      <IconButton
        icon={downloadIcon}
        label={trans.__('Save the image')}
        onClick={picture && save}
      />
      <IconButton
        icon={closeIcon}
        label={trans.__('Close')}
        onClick={onClose}
      />
    </div>
  );
}

function keep(picture: IPicture, image: IRecordedImage): void {
  download(picture.blob, pictureName(image));
}

async function copy(
  picture: IPicture,
  { onSay, trans }: IActionProps
): Promise<void> {
  if (!canCopy()) {
    onSay(
      trans.__(
        'Browsers allow copying images only over HTTPS or from localhost. Save the image instead.'
      )
    );
    return;
  }
  try {
    await copyPicture(picture);
    onSay(trans.__('Image copied to the clipboard.'));
  } catch (error) {
    onSay(
      trans.__(
        'The browser did not copy the image: %1 Save it instead.',
        error instanceof Error ? error.message : String(error)
      )
    );
  }
}

/** A button; without anything to do it is there but does nothing. */
function IconButton(props: {
  icon: LabIcon;
  label: string;
  onClick: (() => void) | null;
}): JSX.Element {
  const { icon: Icon, label, onClick } = props;
  return (
    <button
      type="button"
      className="jp-AgentExec-iconButton"
      title={label}
      aria-label={label}
      aria-disabled={onClick === null}
      onClick={() => onClick?.()}
    >
      <Icon.react tag="span" className="jp-AgentExec-icon" />
    </button>
  );
}

function TextButton(props: {
  label: string;
  isPressed?: boolean;
  onClick: () => void;
}): JSX.Element {
  return (
    <button
      type="button"
      className="jp-AgentExec-link"
      aria-pressed={props.isPressed}
      onClick={props.onClick}
    >
      {props.label}
    </button>
  );
}
