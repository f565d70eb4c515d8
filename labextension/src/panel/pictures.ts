/** An image's data, as the page may show, copy and save it. */
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { ApiError } from '../api/errors';
import { titleInName } from '../ui/sessionpaths';
import type { IAgentExecApi, IRecordedImage } from '../tokens';

/** Images whose address may stand for a document of this page's own origin. */
const RASTER: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/bmp'
]);

const SVG = 'image/svg+xml';

/** What an image's file is called after its name. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  [SVG]: 'svg'
};

/** An image that an execution put out. */
export type ISessionImage = Pick<
  IRecordedImage,
  'agent' | 'execution_id' | 'mimetype' | 'output' | 'seq' | 'title' | 'url'
>;

/** An image that was read. */
export interface IPicture {
  readonly blob: Blob;
  /** For an `img`; no longer valid once released. */
  readonly url: string;
  release(): void;
}

/** Read an image from the server. */
export async function readPicture(
  api: IAgentExecApi,
  { mimetype, url }: Pick<ISessionImage, 'mimetype' | 'url'>,
  signal: AbortSignal
): Promise<IPicture> {
  if (mimetype !== SVG && !RASTER.has(mimetype)) {
    throw new ApiError('refused', `${mimetype} is no type of image.`);
  }
  const data = await api.getBlob(url, signal);
  // Whatever the server calls it, it is to be taken for nothing else.
  const blob = data.slice(0, data.size, mimetype);
  if (mimetype === SVG) {
    // An object URL is of the page's origin: opened in a tab of its own, a
    // drawing's scripts would act for the person. A data URL has no origin.
    return { blob, url: await dataURL(blob), release: () => undefined };
  }
  const objectURL = URL.createObjectURL(blob);
  return {
    blob,
    url: objectURL,
    release: () => URL.revokeObjectURL(objectURL)
  };
}

/**
 * Read an image once its place is near what is in sight.
 *
 * @param scrollMargin - How near, where what scrolls is not the root. Browsers
 *   that do not know it read the image once it is in sight.
 */
export function showNear(
  node: HTMLImageElement,
  image: Pick<ISessionImage, 'mimetype' | 'url'>,
  {
    api,
    ...near
  }: {
    api: IAgentExecApi;
    root?: HTMLElement;
    rootMargin?: string;
    scrollMargin?: string;
  },
  onError: (error: unknown) => void
): IDisposable {
  const aborting = new AbortController();
  const { signal } = aborting;
  let picture: IPicture | null = null;
  const read = async () => {
    picture = await readPicture(api, image, signal);
    if (signal.aborted) {
      picture.release();
    } else {
      node.src = picture.url;
    }
  };
  const observer = new IntersectionObserver(entries => {
    if (entries.some(({ isIntersecting }) => isIntersecting)) {
      observer.disconnect();
      read().catch(error => signal.aborted || onError(error));
    }
  }, near);
  observer.observe(node);
  return new DisposableDelegate(() => {
    observer.disconnect();
    aborting.abort();
    picture?.release();
  });
}

function dataURL(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** A file name for an image that tells where it came from. */
export function pictureName(image: ISessionImage): string {
  const { agent, mimetype, output, seq, title } = image;
  const name = titleInName(title || agent);
  const extension =
    EXTENSIONS[mimetype] ?? mimetype.replace(/^image\/|[^a-z0-9]/g, '');
  const place = `cell ${seq} output ${output + 1}.${extension}`;
  return name ? `${name} ${place}` : place;
}

/** The place of an image in the history. */
export function pictureKey(image: ISessionImage): string {
  return `${image.execution_id} ${image.output} ${image.mimetype}`;
}
