/** The images of the chosen session, or of what was searched for. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message as LuminoMessage } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';
import type { GalleryModel, GallerySource } from '../model/gallery';
import { pictureKey } from '../model/pictures';
import type { SearchModel } from '../model/search';
import type { IActivityModel, IRecordedImage } from '../tokens';
import { describeSearchError, imageText } from './findwording';
import { Lightbox } from './lightbox';
import { ErrorMessage, Message } from './message';
import { MoreButton } from './more';
import { usePicture } from './pictures';
import type { ShowCell } from './searchresults';

/** How far out of sight, in heights of what is in sight, images are kept. */
const MARGIN = '100% 0px';

/** A grid of images; its model is active while it can be seen. */
export class Gallery extends ReactWidget {
  constructor(private readonly _options: Gallery.IOptions) {
    super();
    this.addClass('jp-AgentExecGallery');
    this.title.label = _options.trans.__('Images');
  }

  override dispose(): void {
    this._lightbox?.dispose();
    super.dispose();
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
        {() => (
          <Images
            {...this._options}
            scroller={this.node}
            onOpen={key => this._open(key)}
          />
        )}
      </UseSignal>
    );
  }

  /** Show an image in full size. */
  private _open(key: string): void {
    this._lightbox?.dispose();
    this._lightbox = new Lightbox({ ...this._options, first: key });
    Widget.attach(this._lightbox, document.body);
  }

  private _lightbox: Lightbox | null = null;
}

/** The options of a gallery. */
export namespace Gallery {
  /** What it is made of. */
  export interface IOptions {
    model: IActivityModel;
    search: SearchModel;
    gallery: GalleryModel;
    trans: TranslationBundle;
    onShow: ShowCell;
    onError: (error: unknown) => void;
  }
}

interface IProps extends Gallery.IOptions {
  scroller: HTMLElement;
  onOpen: (key: string) => void;
}

function Images(props: IProps): JSX.Element {
  const { gallery, onError, trans } = props;
  const { images, state } = gallery;
  return (
    <>
      <UseSignal signal={props.search.changed}>
        {() => <Source {...props} />}
      </UseSignal>
      {state.phase === 'error' && (
        <ErrorMessage
          advice={describeSearchError(state.error, trans)}
          retry={trans.__('Try again')}
          onRetry={() => gallery.refresh()}
        />
      )}
      {state.phase === 'loading' && (
        <Message title={trans.__('Loading images…')} />
      )}
      {state.phase === 'ready' && images.length === 0 && (
        <Message
          title={
            gallery.source === 'search'
              ? trans.__('No image matches')
              : trans.__('No images in this session')
          }
        />
      )}
      <Thumbnails {...props} />
      {gallery.hasMore && (
        <MoreButton
          label={trans.__('Show more images')}
          onMore={() => gallery.loadMore()}
          onError={onError}
        />
      )}
    </>
  );
}

/** Whose images are shown, while there is a choice. */
function Source({ gallery, search, trans }: IProps): JSX.Element | null {
  if (search.search === null) {
    return null;
  }
  return (
    <label className="jp-AgentExecFilters-field">
      <span>{trans.__('Images of')}</span>
      <HTMLSelect
        value={gallery.source}
        options={[
          { value: 'search', label: trans.__('the search results') },
          { value: 'session', label: trans.__('the selected session') }
        ]}
        onChange={event => {
          gallery.source = event.currentTarget.value as GallerySource;
        }}
      />
    </label>
  );
}

function Thumbnails(props: IProps): JSX.Element | null {
  const { gallery, trans } = props;
  const { images } = gallery;
  const [at, setAt] = React.useState<string | null>(null);
  const keys = images.map(pictureKey);
  const tabStop = at !== null && keys.includes(at) ? at : keys[0];
  if (images.length === 0) {
    return null;
  }
  return (
    <ul
      role="list"
      aria-label={trans.__('Images')}
      className="jp-AgentExecGallery-grid"
      onKeyDown={moveInGrid}
    >
      {images.map((image, index) => (
        <Thumbnail
          {...props}
          key={keys[index]}
          image={image}
          isTabStop={keys[index] === tabStop}
          onFocus={() => setAt(keys[index])}
        />
      ))}
    </ul>
  );
}

/** Move between thumbnails as they are laid out. */
function moveInGrid(event: React.KeyboardEvent<HTMLUListElement>): void {
  const from = (event.target as HTMLElement).closest('li');
  const items = Array.from(event.currentTarget.querySelectorAll('li'));
  const next = from && thumbnailFor(event.key, items.indexOf(from), items);
  if (next) {
    event.preventDefault();
    next.querySelector('button')?.focus();
  }
}

/** The thumbnail to which a key leads from another. */
function thumbnailFor(
  key: string,
  from: number,
  items: readonly HTMLElement[]
): HTMLElement | undefined {
  const { offsetTop } = items[0];
  const wrap = items.findIndex(each => each.offsetTop !== offsetTop);
  const columns = wrap < 0 ? items.length : wrap;
  const isRTL = getComputedStyle(items[0]).direction === 'rtl';
  switch (key) {
    case 'ArrowRight':
      return items[from + (isRTL ? -1 : 1)];
    case 'ArrowLeft':
      return items[from + (isRTL ? 1 : -1)];
    case 'ArrowDown':
      return items[from + columns];
    case 'ArrowUp':
      return items[from - columns];
    case 'Home':
      return items[0];
    case 'End':
      return items[items.length - 1];
    default:
      return undefined;
  }
}

function Thumbnail(
  props: IProps & {
    image: IRecordedImage;
    isTabStop: boolean;
    onFocus: () => void;
  }
): JSX.Element {
  const { gallery, image, isTabStop, model, onOpen, onShow, trans } = props;
  const item = React.useRef<HTMLLIElement>(null);
  const isNear = useNear(item, props.scroller);
  const { error, picture } = usePicture(model.api, isNear ? image : null);
  const text = imageText(image, trans);
  const tabIndex = isTabStop ? 0 : -1;
  return (
    <li ref={item} className="jp-AgentExecThumbnail" onFocus={props.onFocus}>
      <button
        type="button"
        className="jp-AgentExecThumbnail-picture"
        tabIndex={tabIndex}
        aria-label={trans.__('Image of %1', text)}
        onClick={() => onOpen(pictureKey(image))}
      >
        {picture && <img src={picture.url} alt="" decoding="async" />}
        {error !== undefined && trans.__('Cannot be shown')}
      </button>
      <button
        type="button"
        className="jp-AgentExec-link"
        tabIndex={tabIndex}
        title={trans.__('Go to %1', text)}
        onClick={() => onShow(image.session_id, image.execution_id)}
      >
        {gallery.source === 'session' ? trans.__('Cell %1', image.seq) : text}
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
