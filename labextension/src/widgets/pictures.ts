/** Images of the history on the page. */
import * as React from 'react';
import { readPicture } from '../model/pictures';
import type { IPicture } from '../model/pictures';
import type { IAgentExecApi, IRecordedImage } from '../tokens';

/** An image that is read, or why it cannot be; neither until then. */
export interface IPictureState {
  picture?: IPicture;
  error?: unknown;
}

/**
 * Read an image while it is wanted, and let go of it afterwards.
 *
 * @param image - Null reads nothing.
 */
export function usePicture(
  api: IAgentExecApi,
  image: IRecordedImage | null
): IPictureState {
  const [state, setState] = React.useState<IPictureState>({});
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
    // A list that is read again has other objects for the same images.
  }, [api, image?.url, image?.mimetype]);
  return state;
}

/** Whether the browser lets this page copy images. */
export function canCopy(): boolean {
  return (
    typeof ClipboardItem !== 'undefined' &&
    typeof navigator.clipboard?.write === 'function'
  );
}

/** Put an image on the clipboard, as PNG, which all browsers take. */
export async function copyPicture({ blob, url }: IPicture): Promise<void> {
  // A promise: after a wait, a browser may not take it for the person's wish.
  const png = blob.type === 'image/png' ? blob : drawPNG(url);
  await navigator.clipboard.write([new ClipboardItem({ 'image/png': png })]);
}

/** Draw an image anew. */
async function drawPNG(url: string): Promise<Blob> {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth || image.width;
  canvas.height = image.naturalHeight || image.height;
  canvas.getContext('2d')?.drawImage(image, 0, 0);
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      blob => (blob ? resolve(blob) : reject(new Error('toBlob failed'))),
      'image/png'
    );
  });
}
