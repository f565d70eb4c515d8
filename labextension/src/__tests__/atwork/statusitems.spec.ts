import { nullTranslator } from '@jupyterlab/translation';
import { LiveModel } from '../../live/live';
import { CommandIDs } from '../../tokens';
import { AtWorkItem } from '../../atwork/statusitems';
import { execution, FakeServer, session, settle } from '../fakes';

const trans = nullTranslator.load('jupyter_agent_exec');

describe('AtWorkItem', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('counts what waits, and else the agents at work', async () => {
    const server = new FakeServer();
    const busy = { ...session().kernel!, execution_state: 'busy' as const };
    server.sessions = [session({ executions: 1, kernel: busy })];
    server.executions = [execution({ status: 'running' })];
    const live = new LiveModel(server, server.events);
    const execute = jest.fn();
    const item = new AtWorkItem(live, trans, execute);
    const button = item.node.querySelector('button')!;
    expect(item.isActive).toBe(false);
    server.emit(1);
    void live.refresh();
    await settle(1000);
    expect(button.textContent).toBe('1 agent at work');

    const asks = execution({ seq: 2, status: 'awaiting_approval' });
    const proposing = [session({ id: 's_2', proposed: 3, path: 'a.ipynb' })];
    server.approvals = { ...server.approvals, executions: [asks] };
    server.emit(2, { action: 'approvals' });
    await settle(1000);
    expect(button.textContent).toBe('1 cell needs approval');
    server.approvals = { ...server.approvals, proposing };
    server.emit(3, { action: 'proposals', session_id: 's_2' });
    await settle(1000);
    expect(button.textContent).toBe('1 cell needs approval · 1 proposal');
    expect(button.title).toContain('“analyst” · 3 proposed changes');

    server.approvals = { ...server.approvals, executions: [] };
    server.emit(4, { action: 'approvals' });
    await settle(1000);
    expect(button.textContent).toBe('1 proposal · 1 agent at work');
    const input = { prompt: 'Name? ', password: false, asked_at: 'a' };
    server.executions = [execution({ status: 'awaiting_input', input })];
    server.emit(5, {
      action: 'status',
      execution_id: 'x',
      status: 'awaiting_input'
    });
    await settle(1000);
    expect(button.textContent).toBe(
      '1 cell needs input · 1 proposal · 1 agent at work'
    );
    server.sessions = [];
    server.executions = [];
    void live.refresh();
    await settle(1000);
    expect(button.textContent).toBe('1 proposal');
    button.click();
    expect(execute).toHaveBeenCalledWith(CommandIDs.openPanel);
    expect(item.isActive).toBe(true);
    server.approvals = { ...server.approvals, proposing: [] };
    server.emit(6, { action: 'proposals', session_id: 's_2' });
    await settle(1000);
    expect(item.isActive).toBe(false);
    live.dispose();
  });
});
