/** What the parts of a session's cells are made of. */
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ApprovalView } from '../approvals/approval';
import type { Execute, IAgentExecApi, ISessionModel } from '../tokens';
import type { OpenMenu } from '../ui/menu';

/** What is needed to show an execution, and to decide about it. */
export interface ICellOptions {
  session: ISessionModel;
  api: IAgentExecApi;
  approvals: ApprovalView.IOptions;
  editors: IEditorServices;
  execute: Execute;
  openMenu: OpenMenu;
  trans: TranslationBundle;
  /** Tells a user that something they asked for failed. */
  onError: (error: unknown) => void;
}
