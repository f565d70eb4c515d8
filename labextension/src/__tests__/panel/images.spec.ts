import { SessionModel } from '../../live/session';
import { imagesOf } from '../../panel/images';
import type { IImage } from '../../tokens';
import { execution, FakeServer, session, settle } from '../fakes';

/** An image output. */
function image(output: number, url: string | null): IImage {
  const size = { width: 4, height: 3, bytes: 90 };
  return { mimetype: 'image/png', output, url, ...size };
}

describe('imagesOf', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('lists the images of all executions in order, with where they came from', async () => {
    const server = new FakeServer();
    server.executions = [
      execution({ seq: 1, images: [image(0, '/a'), image(2, '/b')] }),
      execution({ seq: 2 }),
      execution({ seq: 3, images: [image(1, null), image(3, '/c')] })
    ];
    const model = new SessionModel('s_1', server, session({ title: 'Sales' }));
    model.isActive = true;
    await settle();
    const images = imagesOf(model);
    expect(images.map(({ output, seq, url }) => [seq, output, url])).toEqual([
      [1, 0, '/a'],
      [1, 2, '/b'],
      [3, 3, '/c']
    ]);
    expect(images[0]).toMatchObject({
      agent: 'analyst',
      execution_id: 'x_1',
      title: 'Sales'
    });
  });
});
