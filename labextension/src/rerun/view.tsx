/** How the outputs of code that ran again compare with those before. */
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { HTMLSelect, ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Panel, PanelLayout, Widget } from '@lumino/widgets';
import * as React from 'react';
import type { RerunModel } from './model';
import { CommandIDs } from '../tokens';
import type {
  Execute,
  IAgentExecApi,
  IRerun,
  IRerunCell,
  IRerunInput
} from '../tokens';
import { element, iconElement, linkButton } from '../ui/elements';
import { flagIcon, statusIcons } from '../ui/icons';
import { nameImages } from '../ui/imagenames';
import { ErrorMessage, Message } from '../ui/message';
import { showHidden } from '../ui/plainsource';
import { untrusted } from '../ui/untrusted';
import { describeError, inOneLine, momentText } from '../ui/wording';

/** An icon for each verdict; a word stands beside it. */
const ICONS = {
  same: statusIcons.ok,
  differs: flagIcon,
  failed: statusIcons.error,
  not_comparable: statusIcons.lost,
  skipped: statusIcons.cancelled
};

type Verdict = IRerunCell['verdict'] | IRerunInput['verdict'];

/** The word for how a cell or a file compares. */
function verdictText(verdict: Verdict, trans: TranslationBundle): string {
  return {
    same: trans.__('same'),
    differs: trans.__('differs'),
    failed: trans.__('failed'),
    not_comparable: trans.__('not comparable'),
    skipped: trans.__('skipped'),
    changed: trans.__('changed since'),
    missing: trans.__('missing'),
    unknown: trans.__('unknown')
  }[verdict];
}

/** How far it is, and how many cells compare how. */
function progressText(
  { cells, status, total }: IRerun,
  trans: TranslationBundle
): string {
  const counts = new Map<Verdict, number>();
  for (const { verdict } of cells) {
    counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  }
  const words = Array.from(
    counts,
    ([verdict, count]) => `${count} ${verdictText(verdict, trans)}`
  );
  if (status === 'running') {
    words.unshift(trans.__('Cell %1 of %2', cells.length + 1, total));
  } else if (status === 'ended') {
    words.unshift(trans.__('Stopped after %1 of %2', cells.length, total));
  }
  return words.join(' · ');
}

/** A document with what to do, how far it is, and each cell. */
export class RerunView extends Panel {
  constructor(private readonly _options: RerunView.IOptions) {
    super();
    this.addClass('jp-AgentExecRerun');
    this.node.tabIndex = -1;
    this._cells.node.setAttribute('role', 'list');
    this.addWidget(new Head(_options));
    this.addWidget(this._cells);
    _options.rerun.changed.connect(this._draw, this);
    this._draw();
  }

  override dispose(): void {
    this._options.rerun.dispose();
    super.dispose();
  }

  /** Cells are added as they come, and never change. */
  private _draw(): void {
    const { rerun } = this._options.rerun;
    if (rerun?.session_id !== this._shown) {
      this._shown = rerun?.session_id;
      this._cells.widgets.slice().forEach(cell => cell.dispose());
    }
    const known = this._cells.widgets.length;
    rerun?.cells.slice(known).forEach((cell, at) => {
      this._cells.addWidget(new CellView(cell, known + at + 1, this._options));
    });
    this._cells.setHidden(this._cells.widgets.length === 0);
  }

  private readonly _cells = new Panel();
  private _shown: string | undefined;
}

/** The options of the view. */
export namespace RerunView {
  /** What it is made of. */
  export interface IOptions {
    api: IAgentExecApi;
    execute: Execute;
    /** The application's; nothing that runs is rendered with it. */
    rendermime: IRenderMimeRegistry;
    rerun: RerunModel;
    trans: TranslationBundle;
    onError: (error: unknown) => void;
  }
}

/** A cell: what differs, and if asked both outputs side by side. */
class CellView extends Panel {
  constructor(
    { differences, execution_id, of, reason, verdict }: IRerunCell,
    number: number,
    private readonly _options: RerunView.IOptions
  ) {
    super();
    const { execute, trans } = _options;
    const line = element('div', 'jp-AgentExecRerun-line');
    line.append(iconElement(ICONS[verdict]), `${number} · `);
    line.append(element('strong', '', verdictText(verdict, trans)));
    for (const [id, label] of [
      [of, trans.__('Cell before')],
      [execution_id, trans.__('Cell now')]
    ] as const) {
      if (id !== null) {
        const args = { execution_id: id };
        const show = () => void execute(CommandIDs.openPanel, args);
        const link = linkButton(label, show);
        link.setAttribute('aria-label', [label, number].join(': '));
        line.append(link);
      }
    }
    const body = new Widget();
    body.node.append(line);
    if (reason !== null) {
      body.node.append(element('p', '', inOneLine(reason)));
    }
    for (const { diff, what } of differences) {
      body.node.append(element('p', '', inOneLine(what)));
      if (diff) {
        const pre = element('pre', 'jp-AgentExecRerun-diff');
        pre.tabIndex = 0; // it scrolls, also with the keys
        pre.setAttribute('role', 'group');
        pre.setAttribute('aria-label', inOneLine(what));
        // Without the two lines of its head
        pre.textContent = diff.split('\n').slice(2).join('\n');
        showHidden(pre, {}, trans);
        body.node.append(pre);
      }
    }
    this.node.setAttribute('role', 'listitem');
    this.addWidget(body);
    if (of !== null && execution_id !== null) {
      // What an image shows is not in the words.
      const isOpen = differences.some(({ what }) => what.includes('(image/'));
      this._addOutputs([of, execution_id], isOpen);
    }
  }

  /** Add both outputs, which are read when they are unfolded. */
  private _addOutputs(ids: readonly string[], isOpen: boolean): void {
    const { api, onError, trans } = this._options;
    const rendermime = untrusted(this._options.rendermime);
    const fold = new Widget({ node: element('details', '') });
    const summary = trans.__('Outputs before and now');
    const both = new Panel();
    both.addClass('jp-AgentExecRerun-both');
    const naming = nameImages(both.node, trans);
    both.disposed.connect(() => naming.disconnect());
    const read = async () => {
      const read = await Promise.all(ids.map(id => api.getExecution(id)));
      for (const { cell } of this.isDisposed ? [] : read) {
        const values = cell.outputs;
        const model = new OutputAreaModel({ trusted: false, values });
        both.disposed.connect(() => model.dispose());
        const area = new SimplifiedOutputArea({ model, rendermime });
        area.addClass('jp-AgentExecOutputs');
        both.addWidget(area);
      }
    };
    const unfold = () => void read().catch(onError);
    fold.node.addEventListener('toggle', unfold, { once: true });
    fold.node.toggleAttribute('open', isOpen);
    (fold.layout = new PanelLayout()).addWidget(both);
    fold.node.prepend(element('summary', '', summary));
    this.addWidget(fold);
  }
}

/** What can be done, how far it is, and the files that were uploaded. */
class Head extends ReactWidget {
  constructor(private readonly _options: RerunView.IOptions) {
    super();
    _options.rerun.changed.connect(this.update, this);
  }

  protected render(): JSX.Element {
    const { api, onError, rerun: model, trans } = this._options;
    const { rerun, sessions, state } = model;
    const isRunning = rerun?.status === 'running';
    const text = rerun ? progressText(rerun, trans) : '';
    return (
      <>
        <div className="jp-AgentExecRerun-line">
          {rerun?.of !== null && (
            <>
              <button
                type="button"
                className="jp-mod-styled jp-mod-accept"
                disabled={isRunning || state.phase === 'loading'}
                onClick={() => model.run(this._isolated)}
              >
                {trans.__('Run Again in a New Kernel')}
              </button>
              <label>
                <input
                  type="checkbox"
                  onChange={event => {
                    this._isolated = event.currentTarget.checked;
                  }}
                />{' '}
                {trans.__('Isolated kernel')}
              </label>
            </>
          )}
          {isRunning && (
            <button
              type="button"
              className="jp-mod-styled jp-mod-warn"
              onClick={() =>
                void api
                  .request('POST', ['sessions', rerun.session_id, 'close'])
                  .catch(onError)
              }
            >
              {trans.__('Stop')}
            </button>
          )}
          {sessions.length > 1 && (
            <HTMLSelect
              aria-label={trans.__('Result')}
              value={rerun?.session_id}
              onChange={event => model.show(event.currentTarget.value)}
              options={sessions.map(({ id, opened_at }) => ({
                label: momentText(opened_at, Date.now()),
                value: id
              }))}
            />
          )}
        </div>
        {state.phase === 'error' && (
          <ErrorMessage
            advice={describeError(state.error, trans)}
            retry={trans.__('Try again')}
            onRetry={() => model.retry()}
          />
        )}
        {state.phase === 'loading' && <Message title={trans.__('Loading…')} />}
        {state.phase === 'ready' && !rerun && (
          <Message title={trans.__('Not run again yet')} />
        )}
        {isRunning && (
          <progress
            aria-label={text}
            max={rerun.total}
            value={rerun.cells.length}
          />
        )}
        <p role="status">{text}</p>
        {rerun?.inputs.map(({ path, verdict }) => (
          <p key={path}>
            {trans.__('Uploaded file:')} <bdi>{inOneLine(path)}</bdi>,{' '}
            {verdictText(verdict, trans)}
          </p>
        ))}
      </>
    );
  }

  private _isolated = false;
}
