import type { Notebook } from '@jupyterlab/notebook';
import { SteadyView } from '../../ui/view';

/** A frame of what the browser draws, in milliseconds. */
const FRAME = 16;

describe('SteadyView', () => {
  let scroller: HTMLElement;
  let cell: HTMLElement;
  /** JupyterLab's model of where cells are. */
  let places: { windowingActive: boolean; scrollOffset: number };
  let widgets: object[];
  let view: SteadyView;
  /** Where the cell in sight stands when nothing is scrolled. */
  let offset: number;
  let inSight: Element | null;
  let isDrawn: boolean;
  let update: jest.Mock;
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
    isDrawn = true;
    update = jest.fn();
    widgets = [
      { node: cell, model: { id: 'a' }, isPlaceholder: () => !isDrawn }
    ];
    const viewModel = {
      windowingActive: false,
      scrollOffset: 0,
      getSpan: () => [offset, 20]
    };
    places = viewModel;
    document.elementFromPoint = () => inSight;
    view = new SteadyView({
      get activeCell() {
        return widgets[0];
      },
      mode: 'command',
      isDisposed: false,
      outerNode: scroller,
      scrollTo: (to: number) => {
        places.scrollOffset = to;
      },
      update,
      viewModel,
      widgets
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

  describe.each(['wheel', 'touchmove', 'pointerdown', 'click'])(
    'at a %s',
    use => {
      it('lets go, wherever that is', () => {
        view.hold(() => undefined);
        document.body.dispatchEvent(new Event(use, { bubbles: true }));
        offset += 60;
        frames(40);
        expect(seen()).toBe(160);
      });

      it('holds again once that is over', () => {
        view.hold(() => undefined);
        document.body.dispatchEvent(new Event(use, { bubbles: true }));
        frames(20);
        view.hold(() => {
          offset += 60;
        });
        frames(1);
        expect(seen()).toBe(100);
      });
    }
  );

  it('holds at once what a person has clicked into', () => {
    view.hold(() => undefined);
    cell.dispatchEvent(new Event('click', { bubbles: true }));
    view.hold(() => {
      offset += 60;
    });
    frames(1);
    expect(seen()).toBe(100);
  });

  it('holds what a person clicks into just after the view has settled', () => {
    view.hold(() => undefined);
    frames(28);
    document.body.dispatchEvent(new Event('wheel', { bubbles: true }));
    frames(5);
    cell.dispatchEvent(new Event('click', { bubbles: true }));
    view.hold(() => {
      offset += 60;
    });
    frames(1);
    expect(seen()).toBe(100);
  });

  it('lets a movement end that a person has begun', () => {
    view.hold(() => undefined);
    document.body.dispatchEvent(new Event('wheel', { bubbles: true }));
    frames(5);
    view.hold(() => undefined);
    scroller.scrollTop += 50;
    frames(5);
    expect(seen()).toBe(50);
  });

  it('does not move under somebody who types, wherever the keys scroll to', () => {
    const editor = document.createElement('div');
    editor.className = 'cm-editor';
    editor.tabIndex = 0;
    editor.getBoundingClientRect = () =>
      ({ top: seen(), bottom: seen() + 20 }) as DOMRect;
    scroller.getBoundingClientRect = () => ({ top: 0, bottom: 300 }) as DOMRect;
    cell.append(editor);
    editor.focus();
    inSight = null;
    view.hold(() => {
      offset += 60;
    });
    document.body.dispatchEvent(new Event('keydown', { bubbles: true }));
    scroller.scrollTop += 50; // so that the cursor is in sight again
    frames(1);
    expect(seen()).toBe(100);
    offset += 40; // drawn only now
    frames(1);
    expect(seen()).toBe(100);
    scroller.scrollTop += 30; // to where the cursor is
    frames(1);
    expect(seen()).toBe(70);
    offset += 20;
    frames(1);
    expect(seen()).toBe(70);
  });

  it('has a notebook that is not drawn yet go on with it at the end', () => {
    isDrawn = false;
    view.hold(() => undefined);
    frames(20);
    view.hold(() => undefined);
    frames(20);
    expect(update).not.toHaveBeenCalled();
    update.mockImplementation(() => {
      offset += 60;
    });
    frames(40);
    expect(update).toHaveBeenCalledTimes(1);
    // What it draws above moves nothing either.
    expect(seen()).toBe(100);
    frames(40);
    expect(update).toHaveBeenCalledTimes(1);
  });

  it('holds until all above is drawn, however long that takes', () => {
    let isAboveDrawn = false;
    view.hold(() => {
      const isPlaceholder = () => !isAboveDrawn;
      widgets.unshift({ node: null, model: { id: 'b' }, isPlaceholder });
    });
    frames(200);
    isAboveDrawn = true;
    offset += 60;
    frames(1);
    expect(seen()).toBe(100);
    frames(1);
    offset += 10;
    frames(5);
    expect(seen()).toBe(110);
  });

  it.each(['full', 'none'])('leaves drawing to windowing mode %s', mode => {
    isDrawn = mode === 'none';
    places.windowingActive = mode === 'full';
    view.hold(() => undefined);
    frames(40);
    expect(update).not.toHaveBeenCalled();
  });

  it('has no ear for anything when it has settled', () => {
    const remove = jest.spyOn(document, 'removeEventListener');
    const add = jest.spyOn(document, 'addEventListener');
    view.hold(() => undefined);
    view.hold(() => undefined);
    frames(40);
    expect(add).toHaveBeenCalledTimes(5);
    expect(remove).toHaveBeenCalledTimes(5);
    jest.restoreAllMocks();
  });

  it('asks and tells the model where only what is in sight is drawn', () => {
    places.windowingActive = true;
    places.scrollOffset = 400;
    cell.getBoundingClientRect = () => ({ top: -9000 }) as DOMRect;
    view.hold(() => {
      offset += 60;
    });
    expect(places.scrollOffset).toBe(460);
    offset += 40;
    frames(1);
    expect(places.scrollOffset).toBe(500);
    expect(scroller.scrollTop).toBe(400);
  });

  it('lets go of what is taken away', () => {
    view.hold(() => void widgets.pop());
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

  it('keeps the keyboard when a cell with it goes, and takes it from nobody', () => {
    const other = document.createElement('div');
    const outside = document.createElement('input');
    scroller.append(other);
    document.body.append(outside);
    [cell, other].forEach(node => (node.tabIndex = -1));
    const remove = () => {
      cell.remove();
      widgets = [
        { node: other, model: { id: 'b' }, isPlaceholder: () => false }
      ];
    };
    outside.focus();
    view.hold(remove);
    expect(document.activeElement).toBe(outside);
    scroller.prepend(cell);
    cell.focus();
    view.hold(remove);
    expect(document.activeElement).toBe(other);
    outside.remove();
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
