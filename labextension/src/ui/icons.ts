/** The icons of this extension. */
import { LabIcon } from '@jupyterlab/ui-components';
import activity from '../../style/icons/activity.svg';
import approval from '../../style/icons/status-approval.svg';
import cancelled from '../../style/icons/status-cancelled.svg';
import comment from '../../style/icons/comment.svg';
import flag from '../../style/icons/flag.svg';
import key from '../../style/icons/key.svg';
import error from '../../style/icons/status-error.svg';
import ok from '../../style/icons/status-ok.svg';
import pause from '../../style/icons/pause.svg';
import running from '../../style/icons/status-running.svg';
import stopped from '../../style/icons/status-stopped.svg';
import timeout from '../../style/icons/status-timeout.svg';
import waiting from '../../style/icons/status-waiting.svg';
import warning from '../../style/icons/status-warning.svg';
import type { Status } from '../tokens';

function icon(name: string, svgstr: string): LabIcon {
  return new LabIcon({ name: `jupyter-agent-exec:${name}`, svgstr });
}

/** The panel's own. */
export const activityIcon = icon('activity', activity);

/** For what a person says of a cell. */
export const commentIcon = icon('comment', comment);
/** For what a person has something against. */
export const flagIcon = icon('flag', flag);

/** For what an agent has been given access with. */
export const keyIcon = icon('key', key);

/** For holding agents back: JupyterLab has had one of its own since 4.4. */
export const pauseIcon = icon('pause', pause);

const approvalIcon = icon('approval', approval);
const cancelledIcon = icon('cancelled', cancelled);
/** For what nobody knows the end of. */
export const unknownIcon = icon('unknown', warning);
export const errorIcon = icon('error', error);
const okIcon = icon('ok', ok);
const runningIcon = icon('running', running);
const stoppedIcon = icon('stopped', stopped);
const timeoutIcon = icon('timeout', timeout);
const waitingIcon = icon('waiting', waiting);
const warningIcon = icon('warning', warning);

/** An icon for each status; a word stands beside it. */
export const statusIcons: Readonly<Record<Status, LabIcon>> = {
  awaiting_approval: approvalIcon,
  queued: waitingIcon,
  running: runningIcon,
  awaiting_input: commentIcon,
  ok: okIcon,
  error: errorIcon,
  interrupted: stoppedIcon,
  timed_out: timeoutIcon,
  kernel_died: warningIcon,
  cancelled: cancelledIcon,
  rejected: cancelledIcon,
  lost: warningIcon
};

/** What a session does. */
export const sessionIcons = {
  idle: waitingIcon,
  closed: okIcon,
  broken: warningIcon
} as const;
