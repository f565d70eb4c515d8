import type { JupyterFrontEnd } from '@jupyterlab/application';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { LiveModel } from '../../live/live';
import { addReviewCommands } from '../../review/commands';
import { CommandIDs } from '../../tokens';
import { execution, FakeServer } from '../fakes';

const REVIEW = {
  verdict: 'flagged' as const,
  comment: 'Why so?',
  by: 'Ada',
  at: '2026-01-02T03:04:05.000Z'
};

describe('the review commands', () => {
  const open = () => {
    const server = new FakeServer();
    server.put(
      execution({ seq: 1 }),
      execution({ seq: 2, review: REVIEW }),
      execution({ seq: 3, status: 'running' }),
      execution({ seq: 4, status: 'error' })
    );
    const live = new LiveModel(server, server.events);
    const commands = new CommandRegistry();
    const app = { commands } as JupyterFrontEnd;
    addReviewCommands(app, live, nullTranslator.load(''));
    const reviewed = () =>
      server.calls.filter(each => each.startsWith('review'));
    return { commands, reviewed };
  };

  it('mark all that has run and that nobody has reviewed', async () => {
    const { commands, reviewed } = open();
    await commands.execute(CommandIDs.reviewAll, { session_id: 's_1' });
    expect(reviewed()).toEqual([
      'review x_1: approved null',
      'review x_4: approved null'
    ]);
  });

  it('leave what is not given as it is', async () => {
    const { commands, reviewed } = open();
    const execution_id = 'x_2';
    const given = { execution_id, label: 'Flagged', isGiven: true };
    await commands.execute(CommandIDs.review, { ...given, verdict: null });
    await commands.execute(CommandIDs.review, { execution_id, comment: null });
    expect(reviewed()).toEqual([
      'review x_2: null Why so?',
      'review x_2: flagged null'
    ]);
  });
});
