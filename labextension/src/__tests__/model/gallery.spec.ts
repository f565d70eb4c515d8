import { ActivityModel } from '../../model/activity';
import { GalleryModel, IMAGES_PAGE } from '../../model/gallery';
import { SearchModel } from '../../model/search';
import { execution, FakeServer, hit, image, session, settle } from '../fakes';

const OF_SESSION = '{"session_id":"s_1"}';

function images(count: number) {
  return Array.from({ length: count }, (_, index) => image({ seq: index + 1 }));
}

async function open(count = 3) {
  const server = new FakeServer();
  server.sessions = [session({ id: 's_1' }), session({ id: 's_2' })];
  server.executions = [execution()];
  server.hits = [hit()];
  server.images = images(count);
  const activity = new ActivityModel({
    api: server,
    events: server.events,
    restored: Promise.resolve('s_1')
  });
  const search = new SearchModel(activity);
  const gallery = new GalleryModel(activity, search);
  activity.isActive = true;
  await settle();
  const asked = () => server.calls.filter(call => call.startsWith('images'));
  return { server, activity, search, gallery, asked };
}

describe('GalleryModel', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('fetches nothing until somebody looks', async () => {
    const { gallery, activity, asked } = await open();
    activity.select('s_2');
    await settle();
    expect(asked()).toEqual([]);
    expect(gallery.state.phase).toBe('loading');
    gallery.isActive = true;
    await settle();
    expect(asked()).toEqual(['images {"session_id":"s_2"} after null']);
    expect(gallery.images).toHaveLength(3);
    expect(gallery.state.phase).toBe('ready');
  });

  it('has nothing to show when no session is chosen', async () => {
    const { gallery, activity, asked } = await open();
    activity.select(null);
    gallery.isActive = true;
    await settle();
    gallery.refresh();
    await gallery.loadMore();
    expect(asked()).toEqual([]);
    expect(gallery.images).toEqual([]);
    expect(gallery.state.phase).toBe('ready');
  });

  it('reads page by page', async () => {
    const { gallery, asked } = await open(IMAGES_PAGE + 5);
    gallery.isActive = true;
    await settle();
    expect(gallery.images).toHaveLength(IMAGES_PAGE);
    expect(gallery.hasMore).toBe(true);
    await Promise.all([gallery.loadMore(), gallery.loadMore()]);
    expect(gallery.images).toHaveLength(IMAGES_PAGE + 5);
    expect(new Set(gallery.images).size).toBe(IMAGES_PAGE + 5);
    expect(gallery.hasMore).toBe(false);
    expect(asked()).toContain(`images ${OF_SESSION} after ${IMAGES_PAGE}`);
  });

  it('adds the images that come while somebody looks', async () => {
    const { server, gallery, asked } = await open(IMAGES_PAGE + 5);
    gallery.isActive = true;
    await settle();
    await gallery.loadMore();
    server.forget();
    server.images = images(IMAGES_PAGE + 7);
    server.sessions = [
      session({ chain: { head: 'g', length: 9, signature: null } })
    ];
    server.emit(1, { length: 9 });
    await settle(5000);
    expect(asked()).toEqual([`images ${OF_SESSION} after ${IMAGES_PAGE}`]);
    expect(gallery.images).toHaveLength(IMAGES_PAGE + 7);
  });

  it('asks nothing again while a session stays as it is', async () => {
    const { server, activity, gallery, asked } = await open();
    gallery.isActive = true;
    await settle(5000);
    server.forget();
    await activity.refresh();
    await settle(5000);
    expect(asked()).toEqual([]);
  });

  it('shows those of a search, and then those of the session again', async () => {
    const { search, gallery, asked } = await open();
    gallery.isActive = true;
    await settle(5000);
    search.q = 'plot';
    await settle(5000);
    expect(gallery.isOfSearch).toBe(true);
    expect(asked().pop()).toBe('images {"q":"plot"} after null');
    search.clear();
    await settle(5000);
    expect(gallery.isOfSearch).toBe(false);
    expect(asked().pop()).toBe(`images ${OF_SESSION} after null`);
  });

  it('says what failed, and begins anew when asked', async () => {
    const { server, gallery } = await open(IMAGES_PAGE + 5);
    server.failure = new Error('down');
    gallery.isActive = true;
    await settle();
    expect(gallery.state).toMatchObject({ phase: 'error' });
    server.failure = null;
    gallery.refresh();
    await settle(5000);
    expect(gallery.state.phase).toBe('ready');
    await gallery.loadMore();
    gallery.refresh();
    await settle(5000);
    expect(gallery.images).toHaveLength(IMAGES_PAGE);
  });

  it('takes no answer for a session that is not chosen any more', async () => {
    const { server, activity, gallery } = await open();
    let answer: () => void = () => undefined;
    const listed = jest.spyOn(server, 'listImages').mockImplementationOnce(
      () =>
        new Promise(resolve => {
          answer = () =>
            resolve({ images: images(9), next_after: null, indexing: null });
        })
    );
    gallery.isActive = true;
    await settle();
    activity.select('s_2');
    answer();
    await settle(10);
    expect(gallery.images).toEqual([]);
    await settle(5000);
    expect(listed).toHaveBeenCalledTimes(2);
    expect(gallery.images).toHaveLength(3);
  });

  it('lets go of everything when it is disposed', async () => {
    const { activity, gallery, asked } = await open();
    gallery.isActive = true;
    gallery.dispose();
    gallery.dispose();
    activity.select('s_2');
    await settle(5000);
    expect(gallery.isDisposed).toBe(true);
    expect(asked()).toHaveLength(1);
  });
});
