/** Lets a person say what they think of what agents ran. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import { CommandIDs } from '../tokens';
import type { IActivityModel, IReview } from '../tokens';
import { element } from '../ui/elements';
import { commentIcon } from '../ui/icons';
import { labelled, reporter, takes } from '../ui/commands';
import { addErase } from './erase';

type Args = ReadonlyPartialJSONObject;

/** What is reviewed, and what was said of just that. */
interface ISubject {
  review: IReview | null;
  save: (said: Pick<IReview, 'verdict' | 'comment'>) => Promise<unknown>;
}

async function subjectOf(
  { api, selected }: IActivityModel,
  { execution_id, session_id = selected?.id }: Args
): Promise<ISubject | null> {
  const isCell = typeof execution_id === 'string';
  const id = isCell ? execution_id : session_id;
  if (typeof id !== 'string') {
    return null;
  }
  const { review } = await (isCell ? api.getExecution(id) : api.getSession(id));
  const path = [isCell ? 'executions' : 'sessions', id, 'review'];
  return {
    review: isCell && review?.whole_session ? null : review,
    save: said => api.request('PUT', path, said)
  };
}

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
  const body = new Widget();
  body.addClass('jp-AgentExecCommentDialog');
  body.node.append(text);
  const { button } = await showDialog({
    title: trans.__('Comment on what the agent ran'),
    body,
    focusNodeSelector: 'textarea',
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Save') })
    ]
  });
  return button.accept ? text.value.trim() : null;
}

/** Save a review; what is not given stays as it is. */
async function review(model: IActivityModel, args: Args): Promise<void> {
  const subject = await subjectOf(model, args);
  const { comment = subject?.review?.comment ?? null } = args;
  const { verdict = subject?.review?.verdict ?? null } = args;
  await subject?.save({ verdict, comment } as IReview);
}

async function comment(
  model: IActivityModel,
  args: Args,
  trans: TranslationBundle
): Promise<void> {
  const subject = await subjectOf(model, args);
  const said =
    subject && (await askComment(subject.review?.comment ?? '', trans));
  if (subject && said !== null) {
    await subject.save({
      verdict: subject.review?.verdict ?? null,
      comment: said || null
    });
  }
}

/** Add the commands that review and erase. */
export function addReviewCommands(
  app: JupyterFrontEnd,
  model: IActivityModel,
  trans: TranslationBundle
): void {
  const { commands } = app;
  const report = reporter(trans);
  commands.addCommand(CommandIDs.review, {
    label: labelled(trans.__('Mark reviewed')),
    isToggled: ({ isGiven }) => isGiven === true,
    describedBy: takes(
      'session_id',
      'execution_id',
      'verdict',
      'comment',
      'label'
    ),
    execute: args => review(model, args).catch(report)
  });
  commands.addCommand(CommandIDs.comment, {
    label: labelled(trans.__('Comment…')),
    icon: commentIcon,
    describedBy: takes('session_id', 'execution_id', 'label'),
    execute: args => comment(model, args, trans).catch(report)
  });
  addErase(app, model, trans);
}
