import { ServerConnection } from '@jupyterlab/services';
import {
  DOCUMENT_PATTERN,
  documentPath,
  sessionAt,
  SessionDrive
} from '../../model/sessiondrive';
import { FakeServer, session } from '../fakes';

function drive(server = new FakeServer()) {
  return new SessionDrive(
    server,
    ServerConnection.makeSettings(),
    'Read only.'
  );
}

describe('SessionDrive', () => {
  it('has a path for each session, and knows the session of a path', () => {
    expect(documentPath('s_1')).toBe('AgentExec:s_1.ipynb');
    expect(sessionAt('s_1.ipynb')).toBe('s_1');
    expect(sessionAt('a/b.ipynb')).toBeNull();
  });

  it('is told by its paths, also where they stand in an address', () => {
    const path = documentPath('s_1');
    expect(path).toMatch(new RegExp(DOCUMENT_PATTERN));
    expect(encodeURIComponent(path)).toMatch(new RegExp(DOCUMENT_PATTERN));
    expect('s_1.ipynb').not.toMatch(new RegExp(DOCUMENT_PATTERN));
  });

  it('gives the beginning of an export, that cannot be written', async () => {
    const server = new FakeServer();
    server.sessions = [session()];
    const cells = Array.from({ length: 60 }, (_, id) => ({ id }));
    const text = JSON.stringify({ cells, metadata: { kernelspec: 'python3' } });
    const file = { text: () => Promise.resolve(text) };
    server.getNotebook = async () => file as Blob;
    const model = await drive(server).get('s_1.ipynb');
    expect(model).toMatchObject({
      type: 'notebook',
      writable: false,
      content: { metadata: { kernelspec: 'python3' } }
    });
    expect(model.content.cells).toEqual(cells.slice(0, 50));
    const brief = await drive(server).get('s_1.ipynb', { content: false });
    expect(brief.content).toBeNull();
  });

  it('lists nothing', async () => {
    const model = await drive().get('');
    expect(model).toMatchObject({ type: 'directory', content: [] });
    expect(await drive().listCheckpoints()).toEqual([]);
  });

  it('refuses every change with a sentence', async () => {
    const made = drive();
    for (const change of [
      () => made.save(),
      () => made.rename(),
      () => made.delete(),
      () => made.copy(),
      () => made.newUntitled(),
      () => made.createCheckpoint(),
      () => made.restoreCheckpoint(),
      () => made.deleteCheckpoint(),
      () => made.getDownloadUrl()
    ]) {
      await expect(change()).rejects.toThrow('Read only.');
    }
    expect(made.fileChanged.connect(() => undefined)).toBe(true);
    made.dispose();
    expect(made.isDisposed).toBe(true);
  });
});
