import type { Notebook } from '@jupyterlab/notebook';
import { SteadyView } from '../../model/view';

/** A frame of what the browser draws, in milliseconds. */
const FRAME = 16;

describe('SteadyView', () => {
  let scroller: HTMLElement;
  let cell: HTMLElement;
  let view: SteadyView;
  /** Where the cell in sight stands when nothing is scrolled. */
  let offset: number;
  let inSight: Element | null;
  const original = document.elementFromPoint;

  const frames = (count: number) => jest.advanceTimersByTime(count * FRAME);
  /** Where the cell is seen. */
  const seen = () => offset - scroller.scrollTop;

  beforeEach(() => {
    jest.useFakeTimers();
    scroller = document.createElement('div');
    cell = document.createElement('div');
    cell.className = 'jp-Cell';
    scroller.append(cell);
    document.body.append(scroller);
    offset = 500;
    scroller.scrollTop = 400;
    cell.getBoundingClientRect = () => ({ top: seen() }) as DOMRect;
    inSight = cell;
    document.elementFromPoint = () => inSight;
    view = new SteadyView({
      activeCell: null,
      mode: 'command',
      outerNode: scroller,
      widgets: []
    } as unknown as Notebook);
  });

  afterEach(() => {
    scroller.remove();
    document.elementFromPoint = original;
    jest.useRealTimers();
  });

  it('scrolls with what comes above, also if it is drawn later', () => {
    view.hold(() => {
      offset += 60;
    });
    frames(1);
    expect(seen()).toBe(100);
    offset += 40;
    frames(1);
    expect(seen()).toBe(100);
  });

  it('goes on for as long as changes come, and no longer', () => {
    view.hold(() => undefined);
    frames(20);
    view.hold(() => undefined);
    frames(20);
    offset += 10;
    frames(1);
    expect(seen()).toBe(100);
    frames(20);
    offset += 10;
    frames(5);
    expect(seen()).toBe(110);
  });

  it.each(['wheel', 'pointerdown', 'keydown', 'touchmove'])(
    'lets go at a %s',
    use => {
      view.hold(() => undefined);
      scroller.dispatchEvent(new Event(use));
      offset += 60;
      frames(40);
      expect(seen()).toBe(160);
    }
  );

  it('lets go of what is taken away', () => {
    view.hold(() => cell.remove());
    offset += 60;
    frames(40);
    expect(scroller.scrollTop).toBe(400);
  });

  it.each([
    ['nothing is in sight', () => null],
    ['something else is in front', () => document.createElement('div')]
  ])('does nothing when %s', (_, found) => {
    inSight = found();
    view.hold(() => {
      offset += 60;
    });
    frames(40);
    expect(scroller.scrollTop).toBe(400);
  });

  it('holds also when a change fails', () => {
    const failing = () => {
      offset += 60;
      throw new Error('half done');
    };
    expect(() => view.hold(failing)).toThrow('half done');
    frames(1);
    expect(seen()).toBe(100);
  });
});
