import { ServerConnection } from '@jupyterlab/services';
import { AgentExecApi, allExecutions } from '../../api/client';
import { ApiError } from '../../api/errors';

interface IAnswer {
  status?: number;
  body?: unknown;
  date?: string;
}

/** An API whose server gives these answers, and what was asked of it. */
function server(...answers: (IAnswer | Error)[]) {
  const asked: { url: string; init: RequestInit }[] = [];
  const fetch = async (request: Request) => {
    asked.push({
      url: request.url.replace(/^.*\/api\/agent-exec\//, ''),
      init: request
    });
    const answer = answers.shift() ?? {};
    if (answer instanceof Error) {
      throw answer;
    }
    const { status = 200, body = {}, date } = answer;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return {
      ok: status < 400,
      status,
      statusText: '',
      headers: new Headers(date ? { Date: date } : {}),
      text: async () => text,
      json: async () => JSON.parse(text),
      blob: async () => text,
      body: null
    };
  };
  const settings = ServerConnection.makeSettings({
    baseUrl: 'http://localhost/base/',
    fetch: fetch as unknown as ServerConnection.ISettings['fetch']
  });
  return { api: new AgentExecApi(settings), asked };
}

const REQUIRED: IAnswer = {
  status: 403,
  body: { code: 'passphrase_required', message: 'Type it.' }
};

describe('AgentExecApi', () => {
  it('asks for the passphrase once for all that wait, and shows the unlock', async () => {
    const { api, asked } = server(
      REQUIRED,
      REQUIRED,
      { body: { unlock: 'u1' } },
      {},
      {},
      {}
    );
    const ask = jest.fn(async () => {
      await api.unlock('five words');
      return true;
    });
    api.askPassphrase = ask;
    await Promise.all([api.reject('x_1', null), api.setPaused(false)]);
    expect(ask).toHaveBeenCalledTimes(1);
    await api.getApprovals();
    expect(
      asked.map(({ init, url }) => [
        url,
        (init as Request).headers.get('X-Agent-Exec-Unlock')
      ])
    ).toEqual([
      ['executions/x_1/reject', null],
      ['approvals/pause', null],
      ['unlock', null],
      ['executions/x_1/reject', 'u1'],
      ['approvals/pause', 'u1'],
      ['approvals', null]
    ]);
  });

  it('refuses a decision for which nobody gives the passphrase', async () => {
    const { api, asked } = server(REQUIRED, REQUIRED);
    const refused = { failure: 'refused', code: 'passphrase_required' };
    await expect(api.reject('x_1', null)).rejects.toMatchObject(refused);
    api.askPassphrase = async () => false;
    await expect(api.reject('x_1', null)).rejects.toMatchObject(refused);
    expect(asked).toHaveLength(2);
  });

  it('asks for sessions, without what is not known', async () => {
    const { api, asked } = server();
    await api.listSessions(null, 50);
    await api.listSessions('s_1', 50);
    expect(asked.map(({ url }) => url)).toEqual([
      'sessions?limit=50',
      'sessions?after=s_1&limit=50'
    ]);
  });

  it('asks for the executions after one, with or without large outputs', async () => {
    const { api, asked } = server();
    await api.listExecutions('s_1', { after: 0, limit: 20 });
    await api.listExecutions('s_1', { after: 7, brief: true, limit: 20 });
    expect(asked.map(({ url }) => url)).toEqual([
      'sessions/s_1/executions?after=0&inert=true&limit=20',
      'sessions/s_1/executions?after=7&inert=true&limit=20&outputs=brief'
    ]);
  });

  it('asks for proposals, events, a preview and what is found', async () => {
    const { api, asked } = server();
    await api.listProposals('work/a b.ipynb');
    await api.listProposals(null, 's_1');
    await api.decideEdits('keep', 's_1', ['e_1']);
    await api.listEvents('s_1', null, 100);
    await api.search('a b', 10);
    await api.getPreview('x_1');
    await api.withdrawGrant('s_1');
    expect(asked.map(({ init, url }) => `${init.method} ${url}`)).toEqual([
      'GET proposals?path=work%2Fa+b.ipynb',
      'GET proposals?session_id=s_1',
      'POST sessions/s_1/proposals/keep',
      'GET sessions/s_1/events?limit=100',
      'GET search?q=a+b&limit=10',
      'GET executions/x_1/preview',
      'DELETE sessions/s_1/grant'
    ]);
  });

  it('asks for what an undo could bring back, and what ran in a kernel', async () => {
    const { api, asked } = server();
    await api.getCheckpoints('k');
    await api.keepCheckpoints('k');
    await api.listKernelRuns('k');
    await api.undo('x_1');
    expect(asked.map(({ init, url }) => `${init.method} ${url}`)).toEqual([
      'GET kernels/k/checkpoints',
      'PUT kernels/k/checkpoints',
      'GET kernels/k/runs',
      'POST executions/x_1/undo'
    ]);
  });

  it('gives addresses for the browser, whatever the server’s', () => {
    const { api } = server();
    expect(api.notebookURL('s/1')).toMatch(
      /\/api\/agent-exec\/sessions\/s%2F1\/notebook$/
    );
    expect(api.blobURL('/base/api/agent-exec/blobs/abc')).toMatch(
      /^http.*\/base\/api\/agent-exec\/blobs\/abc$/
    );
  });

  it('says what a person decides, and answers what code asks', async () => {
    const { api, asked } = server();
    await api.approve('x_1', 'abc');
    await api.approve('x_1', 'abc', '1 + 2');
    await api.reject('x_1', 'not now');
    await api.approve('x_1', 'abc', undefined, 'hour');
    await api.approve('x_1', 'abc', undefined, 'once');
    await api.setPaused(true);
    await api.giveInput('x_1', 'Ada', 'then');
    await api.changeRound('undo', 's_1', 'then');
    await api.changeRound('redo', 's_1');
    const said = await Promise.all(
      asked.map(async ({ url, init }) => [
        `${init.method} ${url}`,
        JSON.parse(await (init as Request).text())
      ])
    );
    expect(said).toEqual([
      ['POST executions/x_1/approve', { source_sha256: 'abc' }],
      [
        'POST executions/x_1/approve',
        { source_sha256: 'abc', source: '1 + 2' }
      ],
      ['POST executions/x_1/reject', { reason: 'not now' }],
      ['POST executions/x_1/approve', { source_sha256: 'abc', grant: 'hour' }],
      ['POST executions/x_1/approve', { source_sha256: 'abc', once: true }],
      ['PUT approvals/pause', { paused: true }],
      ['POST executions/x_1/input', { value: 'Ada', asked_at: 'then' }],
      ['POST sessions/s_1/round/undo', { since: 'then' }],
      ['POST sessions/s_1/round/redo', {}]
    ]);
  });

  it('withdraws what a session was granted', async () => {
    const { api, asked } = server();
    await api.withdrawGrant('s_1');
    expect(asked.map(({ url, init }) => `${init.method} ${url}`)).toEqual([
      'DELETE sessions/s_1/grant'
    ]);
  });

  it('reads all of a session, page by page', async () => {
    const { api, asked } = server(
      { body: { executions: [{ seq: 1 }], next_after: 1 } },
      { body: { executions: [{ seq: 2 }], next_after: null } }
    );
    const all = await allExecutions(api, 's_1');
    expect(all.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(
      asked.map(({ url }) => new URLSearchParams(url).get('limit'))
    ).toEqual(asked.map(() => '200'));
  });

  it('puts ids safely into addresses', async () => {
    const { api, asked } = server();
    await api.getExecution('a/../b?c');
    expect(asked[0].url).toBe('executions/a%2F..%2Fb%3Fc?inert=true');
  });

  it('asks for a session, its notebook and a range of text', async () => {
    const { api, asked } = server();
    await api.getSession('s_1');
    await api.getNotebook('s_1');
    await api.shareNotebook('s_1');
    await api.getText('x_1', 10, 20);
    expect(asked.map(({ url }) => url)).toEqual([
      'sessions/s_1',
      'sessions/s_1/notebook',
      'sessions/s_1/notebook/share',
      'executions/x_1/text?offset=10&limit=20'
    ]);
  });

  it('interrupts with a POST', async () => {
    const { api, asked } = server();
    await api.interrupt('s_1');
    expect(asked[0]).toMatchObject({
      url: 'sessions/s_1/interrupt',
      init: { method: 'POST' }
    });
  });

  it('accepts outputs, reviews, and closes a session', async () => {
    const { api, asked } = server();
    await api.acceptOutputs('x_1');
    await api.review('x_1', { verdict: 'flagged', comment: null });
    await api.closeSession('s_2');
    expect(asked.map(({ url, init }) => [url, init?.method])).toEqual([
      ['executions/x_1/accept', 'POST'],
      ['executions/x_1/review', 'PUT'],
      ['sessions/s_2/close', 'POST']
    ]);
  });

  it('asks for open sessions only, if that is wanted', async () => {
    const { api, asked } = server();
    await api.listSessions('s_9', 5, { status: 'open' });
    expect(asked[0].url).toBe('sessions?after=s_9&limit=5&status=open');
  });

  it.each([
    [404, { code: 'session_not_found', message: 'No.' }, 'refused', 'No.'],
    [404, 'not json', 'extension_missing', '404'],
    [403, { message: 'Forbidden' }, 'not_allowed', 'Forbidden'],
    [401, { code: 'unauthenticated', message: 'Who?' }, 'not_allowed', 'Who?'],
    [
      503,
      { code: 'history_unavailable', message: 'Full.' },
      'refused',
      'Full.'
    ],
    [502, '<html>Bad Gateway</html>', 'unreachable', '502'],
    [503, { message: 'Your server is stopped.' }, 'unreachable', 'Your server'],
    [424, { message: 'Not running' }, 'unreachable', 'Not running'],
    [504, '', 'unreachable', '504'],
    [500, 'null', 'refused', '500']
  ])(
    'tells a refusal with %i from others',
    async (status, body, failure, message) => {
      const { api } = server({ status, body });
      await expect(api.getSession('s')).rejects.toMatchObject({
        failure,
        status,
        message: expect.stringContaining(message)
      });
    }
  );

  it('tells that the server cannot be reached', async () => {
    const { api } = server(new TypeError('Failed to fetch'));
    const error = await api.getSession('s').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ failure: 'unreachable', status: null });
  });

  it('tells that an answer broke off, and takes an empty one', async () => {
    const { api } = server(
      { body: '{"sessions": [' },
      { status: 204, body: '' }
    );
    await expect(api.listSessions(null, 5)).rejects.toMatchObject({
      failure: 'unreachable',
      status: 200
    });
    expect(await api.undo('x_1')).toBeUndefined();
  });

  it('learns how far the clock is off, but for fractions of seconds', async () => {
    const hour = 3_600_000;
    const { api } = server(
      { date: new Date(Date.now() + hour).toUTCString() },
      {},
      { date: new Date().toUTCString() }
    );
    await api.getSession('s');
    expect(Math.abs(api.clockOffset - hour)).toBeLessThan(10_000);
    const known = api.clockOffset;
    await api.getSession('s');
    expect(api.clockOffset).toBe(known);
    await api.getSession('s');
    expect(api.clockOffset).toBe(0);
  });
});
