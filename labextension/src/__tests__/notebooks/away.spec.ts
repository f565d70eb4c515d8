import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { LiveModel } from '../../live/live';
import { QUIET, tellAway } from '../../notebooks/away';
import { CommandIDs } from '../../tokens';
import { execution, FakeServer, session, settle } from '../fakes';

/** A page whose user sees no agent, and what they are told. */
function open() {
  Notification.manager.dismiss();
  const server = new FakeServer();
  server.sessions = [session(), session({ id: 's_2' })];
  const live = new LiveModel(server, server.events);
  const opened: unknown[] = [];
  const commands = new CommandRegistry();
  commands.addCommand(CommandIDs.openSession, {
    describedBy: {},
    execute: args => void opened.push(args)
  });
  const shell = { currentWidget: null };
  const app = { commands, shell } as unknown as JupyterFrontEnd;
  tellAway(app, live, nullTranslator.load(''));
  let serial = 0;
  const end = (id: string, status = 'ok', session_id = 's_1') =>
    server.emit(++serial, { execution_id: id, session_id, status });
  const quiet = async () => {
    await settle();
    await jest.advanceTimersByTimeAsync(QUIET);
  };
  const told = () => Notification.manager.notifications;
  return { end, live, opened, quiet, server, told };
}

describe('what agents ran out of sight', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('is told in one line when they are quiet, with the ways there', async () => {
    const { end, opened, quiet, told } = open();
    end('x_1', 'running');
    end('x_1');
    end('x_2', 'error');
    end('x_3');
    expect(told()).toEqual([]);
    await quiet();
    expect(told()).toMatchObject([
      { message: '“analyst” ran 3 cells · 1 failed' }
    ]);
    told()[0].options.actions?.forEach(({ callback }) =>
      callback({} as MouseEvent)
    );
    expect(opened).toEqual([
      { execution_id: 'x_3', session_id: 's_1' },
      { execution_id: 'x_2', session_id: 's_1' }
    ]);
    end('x_4', 'ok', 's_2');
    await quiet();
    expect(told()).toMatchObject([
      { message: '2 agent sessions ran 4 cells · 1 failed' }
    ]);
  });

  it('is not told while one of them goes on', async () => {
    const { end, quiet, server, told } = open();
    server.executions = [execution({ seq: 2, status: 'running' })];
    end('x_1');
    await quiet();
    expect(told()).toEqual([]);
    server.executions = [];
    end('x_2');
    await quiet();
    expect(told()).toMatchObject([{ message: '“analyst” ran 2 cells' }]);
  });

  it('is told though the page was hidden when it ended', async () => {
    const { end, live, quiet, server, told } = open();
    server.executions = [execution({ status: 'running' })];
    await live.refresh();
    jest.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    server.executions = [];
    end('x_1');
    await quiet();
    expect(told()).toMatchObject([{ message: '“analyst” ran 1 cell' }]);
  });

  it('is told no more once its user looks, and not at all while they do', async () => {
    const { end, live, quiet, told } = open();
    end('x_1');
    await quiet();
    expect(told()).toHaveLength(1);
    live.selected = 's_1';
    expect(told()).toEqual([]);
    end('x_2');
    await quiet();
    expect(told()).toEqual([]);
  });
});
