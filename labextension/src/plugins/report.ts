/** Tells a person that something they asked for failed. */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { describeError } from '../widgets/wording';

/** A function that shows an error as a notification. */
export function reporter(trans: TranslationBundle): (error: unknown) => void {
  return error => {
    const { title, hint } = describeError(error, trans);
    Notification.error(`${title}. ${hint}`, { autoClose: 8000 });
  };
}
