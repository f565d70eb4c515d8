/**
 * The words that widgets and plugins share: what crosses the wire, the models,
 * and what other plugins may ask for.
 */
import type { CommandRegistry } from '@lumino/commands';
import { Token } from '@lumino/coreutils';
import type { LiveModel } from './live/live';

export * from './wire';
export type {
  IAgentExecApi,
  IDecisionDetails,
  IExecutionRange
} from './api/client';
export type { IAgentAtWork, IStopped } from './live/live';
export type { ExecutionModel as IExecutionModel } from './live/execution';
export type { SessionModel as ISessionModel } from './live/session';

/** The domain of this extension's translations. */
export const TRANSLATION_DOMAIN = 'jupyter_agent_exec';

/** What agents do on this server now, and what waits. */
export type ILiveModel = LiveModel;

/** The model of what agents do, for plugins that show or control it. */
export const ILiveModel = new Token<ILiveModel>(
  'jupyter-agent-exec:ILiveModel',
  'What agents do on this server: their open sessions, what they run, and what waits for the user.'
);

/** The commands of this extension. */
export namespace CommandIDs {
  export const approve = 'agent-exec:approve';
  export const reject = 'agent-exec:reject';
  export const acceptOutputs = 'agent-exec:accept-outputs';
  export const erase = 'agent-exec:erase';
  export const withdrawGrant = 'agent-exec:withdraw-grant';
  export const pause = 'agent-exec:pause';
  export const comment = 'agent-exec:comment';
  export const review = 'agent-exec:review';
  export const undo = 'agent-exec:undo';
  export const undoRound = 'agent-exec:undo-round';
  export const redoRound = 'agent-exec:redo-round';
  export const reviewAll = 'agent-exec:review-all';
  export const nextUnreviewed = 'agent-exec:next-unreviewed';
  export const nextFailed = 'agent-exec:next-failed';
  export const goToCell = 'agent-exec:go-to-cell';
  export const goToProposal = 'agent-exec:go-to-proposal';
  export const openSession = 'agent-exec:open-session';
  export const openPanel = 'agent-exec:open-panel';
  export const refresh = 'agent-exec:refresh';
  export const interrupt = 'agent-exec:interrupt';
  export const stopAll = 'agent-exec:stop-all';
  export const newToken = 'agent-exec:new-token';
  export const openNotebook = 'agent-exec:open-notebook';
  export const shareSession = 'agent-exec:share-session';
  export const insertAndRun = 'agent-exec:insert-and-run';
  export const insertCells = 'agent-exec:insert-cells';
  export const insertMissing = 'agent-exec:insert-missing';
  export const copySource = 'agent-exec:copy-source';
  export const openText = 'agent-exec:open-text';
  export const openImage = 'agent-exec:open-image';
  export const showDifference = 'agent-exec:show-difference';
}

/** Runs a command; what the widgets need of the application. */
export type Execute = CommandRegistry['execute'];
