/** What the panel shows of approvals: in cells, sessions, and above all. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { isFinal } from '../tokens';
import type { Execute, IActivityModel, IApprovalsModel } from '../tokens';
import { ApprovalRecord } from '../widgets/approvalrecord';
import { ApprovalSlot } from '../widgets/approvalslot';
import { AskingList, PauseButton } from '../widgets/asking';
import type { ICellParts } from '../widgets/cell';
import { Clock } from '../widgets/clock';
import { SessionGrant } from '../widgets/grant';

/** Parts of cells and sessions, and what stands above them. */
export interface IApprovalParts {
  above: ICellParts['above'];
  session: ICellParts['session'];
  /** For the head of the panel. */
  head: () => Widget;
  /** For the panel's toolbar. */
  pause: () => Widget;
}

/** Make what the panel shows of approvals. */
export function approvalParts(
  approvals: IApprovalsModel,
  model: IActivityModel,
  trans: TranslationBundle,
  execute: Execute
): IApprovalParts {
  const { api } = model;
  const now = () => Date.now() + api.clockOffset;
  const clock = new Clock(now);
  const drafts = new Map<string, string>();
  const options = { api, approvals, clock, drafts, execute, now, trans };
  return {
    above: [
      ({ execution: { id, status } }) =>
        isFinal(status) ? new Widget() : new ApprovalSlot(id, options),
      cell => new ApprovalRecord(cell, trans)
    ],
    session: [session => new SessionGrant(session, options)],
    head: () => new AskingList(options),
    pause: () => new PauseButton(options)
  };
}
