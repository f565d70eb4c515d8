/** Lets a person say what they think of what agents ran. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { undoIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import { allExecutions } from '../api/client';
import { CommandIDs, isFinal } from '../tokens';
import type { ILiveModel, IReview } from '../tokens';
import { element } from '../ui/elements';
import { commentIcon } from '../ui/icons';
import { labelled, reporter, sessionCommand, takes } from '../ui/commands';
import { undo } from './undo';

type Args = ReadonlyPartialJSONObject;

/** Ask for a comment; null if it was not given after all. */
async function askComment(
  comment: string,
  trans: TranslationBundle
): Promise<string | null> {
  const text = element('textarea', 'jp-mod-styled');
  text.value = comment;
  text.rows = 5;
  text.dir = 'auto';
  text.maxLength = 10_000;
  text.setAttribute('aria-label', trans.__('Comment'));
  text.placeholder = trans.__('The agent reads it in its next answer.');
  const body = new Widget();
  body.addClass('jp-AgentExecCommentDialog');
  body.node.append(text);
  const { button } = await showDialog({
    title: trans.__('Comment'),
    body,
    focusNodeSelector: 'textarea',
    buttons: [
      Dialog.cancelButton(),
      Dialog.okButton({ label: trans.__('Save') })
    ]
  });
  return button.accept ? text.value.trim() : null;
}

/** Save a review; what is not given stays as it is. */
async function review({ api }: ILiveModel, args: Args): Promise<void> {
  const id = String(args.execution_id);
  const before = (await api.getExecution(id)).review;
  const { comment = before?.comment ?? null } = args;
  const { verdict = before?.verdict ?? null } = args;
  await api.review(id, { comment, verdict } as IReview);
}

/** Mark all that has run so far in a session, and that nobody has reviewed. */
async function reviewAll({ api }: ILiveModel, id: string): Promise<void> {
  for (const { id: executionId, review, status } of await allExecutions(
    api,
    id
  )) {
    if (isFinal(status) && !review) {
      await api.review(executionId, { verdict: 'approved', comment: null });
    }
  }
}

async function comment(
  { api }: ILiveModel,
  { execution_id }: Args,
  trans: TranslationBundle
): Promise<void> {
  const id = String(execution_id);
  const { review } = await api.getExecution(id);
  const said = await askComment(review?.comment ?? '', trans);
  if (said !== null) {
    const verdict = review?.verdict ?? null;
    await api.review(id, { verdict, comment: said || null });
  }
}

/** Add the commands that review. */
export function addReviewCommands(
  app: JupyterFrontEnd,
  live: ILiveModel,
  trans: TranslationBundle
): void {
  const { commands } = app;
  const report = reporter(trans);
  commands.addCommand(CommandIDs.review, {
    label: labelled(trans.__('Mark Reviewed')),
    isToggled: ({ isGiven }) => isGiven === true,
    describedBy: takes('execution_id!', 'verdict', 'comment', 'label'),
    execute: args => review(live, args).catch(report)
  });
  commands.addCommand(CommandIDs.reviewAll, {
    ...sessionCommand(live, trans, id => reviewAll(live, id)),
    label: trans.__('Mark All Reviewed')
  });
  commands.addCommand(CommandIDs.comment, {
    label: trans.__('Comment…'),
    icon: commentIcon,
    describedBy: takes('execution_id!'),
    execute: args => comment(live, args, trans).catch(report)
  });
  commands.addCommand(CommandIDs.undo, {
    label: trans.__('Undo What the Agent Ran…'),
    icon: undoIcon,
    describedBy: takes('execution_id!'),
    execute: ({ execution_id }) =>
      undo(
        live.api,
        String(execution_id),
        commands.execute.bind(commands),
        trans
      ).catch(report)
  });
}
