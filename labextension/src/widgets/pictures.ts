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
