import type { JupyterFrontEnd } from '@jupyterlab/application';
import { CommandRegistry } from '@lumino/commands';
import { atWorkPlugin } from '../../atwork/plugin';
import { LiveModel } from '../../live/live';
import { CommandIDs } from '../../tokens';
import { execution, FakeServer, session, settle } from '../fakes';

/** Two agents at work, which the page does not know of yet. */
function twoAgents(): { commands: CommandRegistry; server: FakeServer } {
  const server = new FakeServer();
  const live = new LiveModel(server, server.events);
  const commands = new CommandRegistry();
  void atWorkPlugin.activate(
    { commands, shell: { currentWidget: null } } as JupyterFrontEnd,
    live
  );
  server.sessions = [session({ id: 's_1' }), session({ id: 's_2' })];
  server.executions = ['s_1', 's_2'].map(id =>
    execution({ id: `x_${id}`, session_id: id, status: 'running' })
  );
  return { commands, server };
}

function interrupts({ calls }: FakeServer): string[] {
  return calls.filter(call => call.startsWith('interrupt')).sort();
}

describe('stopping', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('looks at the server before it chooses', async () => {
    const { commands, server } = twoAgents();
    void commands.execute(CommandIDs.interrupt);
    await settle();
    expect(document.body.textContent).toContain('Several agents are at work.');
    expect(interrupts(server)).toEqual([]);
  });

  it('stops all that the server has, without a question', async () => {
    const { commands, server } = twoAgents();
    void commands.execute(CommandIDs.stopAll);
    await settle(5000);
    expect(interrupts(server)).toEqual(['interrupt s_1', 'interrupt s_2']);
  });
});
