/** The images of the chosen session, in one row. */
import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';
import type { IAgentExecApi, ISessionModel } from '../tokens';
import { download } from '../widgets/download';
import { element } from '../widgets/elements';
import { imageText } from '../widgets/wording';
import { pictureKey, pictureName, readPicture } from './pictures';
import type { IPicture, ISessionImage } from './pictures';

/** How far out of sight, in widths of what is in sight, images are kept. */
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

/** Small images, one beside the other; no row if there are none. */
export class ImageStrip extends ReactWidget {
  constructor(private readonly _options: ImageStrip.IOptions) {
    super();
    this.addClass('jp-AgentExecImages');
    _options.session.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  protected render(): JSX.Element {
    const { session, trans } = this._options;
    return (
      <UseSignal signal={session.changed}>
        {() => (
          <ul role="list" aria-label={trans.__('Images')}>
            {imagesOf(session).map(image => (
              <Thumbnail
                {...this._options}
                key={pictureKey(image)}
                image={image}
                scroller={this.node}
              />
            ))}
          </ul>
        )}
      </UseSignal>
    );
  }

  private _onChanged(): void {
    this.setHidden(imagesOf(this._options.session).length === 0);
  }
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

interface IProps extends ImageStrip.IOptions {
  image: ISessionImage;
}

function Thumbnail(props: IProps & { scroller: HTMLElement }): JSX.Element {
  const { api, image, onError, scroller, trans } = props;
  const item = React.useRef<HTMLLIElement>(null);
  const isNear = useNear(item, scroller);
  const { error, picture } = usePicture(api, isNear ? image : null);
  const text = trans.__('Image of %1', imageText(image, trans));
  return (
    <li ref={item}>
      <button
        type="button"
        aria-label={text}
        title={text}
        onClick={() => void openImage(props).catch(onError)}
      >
        {picture && <img src={picture.url} alt="" decoding="async" />}
        {error !== undefined && trans.__('Cannot be shown')}
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

/** Read an image while it is wanted; null reads nothing. */
function usePicture(
  api: IAgentExecApi,
  image: ISessionImage | null
): { picture?: IPicture; error?: unknown } {
  const [state, setState] = React.useState({});
  React.useEffect(() => {
    if (!image) {
      return;
    }
    const aborting = new AbortController();
    const { signal } = aborting;
    let picture: IPicture | null = null;
    readPicture(api, image, signal).then(
      read => {
        picture = read;
        if (signal.aborted) {
          read.release();
        } else {
          setState({ picture: read });
        }
      },
      error => {
        if (!signal.aborted) {
          setState({ error });
        }
      }
    );
    return () => {
      aborting.abort();
      picture?.release();
      setState({});
    };
    // A session that is read again has other objects for the same images.
  }, [api, image?.url, image?.mimetype]);
  return state;
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
async function openImage(props: IProps): Promise<void> {
  const { api, onShow, session, trans } = props;
  const previous = trans.__('Previous');
  const next = trans.__('Next');
  const goTo = trans.__('Go to the cell');
  const save = trans.__('Save');
  const close = trans.__('Close');
  let { image } = props;
  let pressed = close;
  do {
    const images = imagesOf(session);
    const key = pictureKey(image);
    const at = images.findIndex(each => pictureKey(each) === key);
    const labels = [
      ...(at > 0 ? [previous] : []),
      ...(at + 1 < images.length ? [next] : []),
      goTo,
      save,
      close
    ];
    const { signal } = new AbortController();
    const picture = await readPicture(api, image, signal);
    const text = imageText(image, trans);
    const dialog = new Dialog({
      title: text,
      body: imageBody(picture.url, text),
      buttons: labels.map(label =>
        Dialog.createButton({ label, accept: label !== close })
      ),
      defaultButton: Math.max(labels.indexOf(pressed), 0)
    });
    dialog.addClass('jp-AgentExecImage');
    pressed = (await dialog.launch()).button.label;
    picture.release();
    if (pressed === goTo) {
      onShow(image.execution_id);
    } else if (pressed === save) {
      download(picture.blob, pictureName(image));
    } else if (pressed === previous) {
      image = images[at - 1] ?? image;
    } else if (pressed === next) {
      image = images[at + 1] ?? image;
    }
  } while (pressed === previous || pressed === next);
}
