import { pictureKey, pictureName, readPicture } from '../../panel/pictures';
import { FakeServer, image } from '../fakes';

const made: Blob[] = [];
const revoked: string[] = [];

// The tests' DOM has no object URLs.
URL.createObjectURL = blob => `blob:${made.push(blob as Blob)}`;
URL.revokeObjectURL = url => void revoked.push(url);

const { signal } = new AbortController();

describe('readPicture', () => {
  it('gives an address of its own until it is released', async () => {
    const server = new FakeServer();
    const picture = await readPicture(server, image(), signal);
    expect(server.calls).toEqual(['blob /api/agent-exec/blobs/1']);
    expect(picture.url).toBe(`blob:${made.length}`);
    expect(revoked).toEqual([]);
    picture.release();
    expect(revoked).toEqual([picture.url]);
  });

  it('takes an image for nothing but an image', async () => {
    const server = new FakeServer();
    server.getBlob = async () => new Blob(['<script>'], { type: 'text/html' });
    const { blob } = await readPicture(server, image(), signal);
    expect(blob.type).toBe('image/png');
    const other = image({ mimetype: 'text/html' });
    await expect(readPicture(server, other, signal)).rejects.toThrow(
      'text/html is no type of image.'
    );
  });

  it('gives a drawing no address of this origin', async () => {
    const svg = image({ mimetype: 'image/svg+xml' });
    const before = made.length;
    const picture = await readPicture(new FakeServer(), svg, signal);
    expect(picture.url).toMatch(/^data:image\/svg\+xml;base64,/);
    picture.release();
    expect(made).toHaveLength(before);
  });
});

describe('pictureName', () => {
  it('tells the session, the cell and the output', () => {
    expect(pictureName(image({ seq: 7, output: 1 }))).toBe(
      'Sales cell 7 output 2.png'
    );
    expect(pictureName(image({ title: null, mimetype: 'image/svg+xml' }))).toBe(
      'analyst cell 1 output 1.svg'
    );
    expect(pictureName(image({ mimetype: 'image/jpeg' }))).toMatch(/\.jpg$/);
  });

  it('is safe on any file system', () => {
    expect(pictureName(image({ title: '../a\u202e:b' }))).toBe(
      '.. a b cell 1 output 1.png'
    );
    expect(pictureName(image({ title: '/', mimetype: 'image/a/../b' }))).toBe(
      'cell 1 output 1.ab'
    );
  });
});

describe('pictureKey', () => {
  it('tells images of one output apart', () => {
    const keys = [
      image(),
      image({ output: 1 }),
      image({ seq: 2 }),
      image({ mimetype: 'image/svg+xml' })
    ].map(pictureKey);
    expect(new Set(keys).size).toBe(4);
  });
});
