/** How the cells of a session that runs code again compare with those before. */
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import { Panel } from '@lumino/widgets';
import type { Widget } from '@lumino/widgets';
import * as React from 'react';
import { createSessionPart } from './facts';
import { CommandIDs } from '../tokens';
import type {
  Execute,
  IAgentExecApi,
  IRerun,
  IRerunCell,
  IRerunInput,
  ISessionModel
} from '../tokens';
import { Details, Fold } from '../ui/details';
import { element, iconElement, linkButton } from '../ui/elements';
import { flagIcon, statusIcons } from '../ui/icons';
import { showHidden } from '../ui/plainsource';
import { untrusted } from '../ui/untrusted';
import { inOneLine } from '../ui/wording';

/** An icon for each verdict; a word stands beside it. */
const ICONS = {
  same: statusIcons.ok,
  differs: flagIcon,
  failed: statusIcons.error,
  not_comparable: statusIcons.lost,
  skipped: statusIcons.cancelled
};

type Verdict = IRerunCell['verdict'] | IRerunInput['verdict'];

/** What the parts below are made of. */
export interface IComparisonOptions {
  api: IAgentExecApi;
  execute: Execute;
  /** The application's; nothing that runs is rendered with it. */
  rendermime: IRenderMimeRegistry;
  session: ISessionModel;
  trans: TranslationBundle;
  onError: (error: unknown) => void;
}

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
    const at = Math.min(cells.length + 1, total);
    words.unshift(trans.__('Cell %1 of %2', at, total));
  } else if (status === 'ended') {
    words.unshift(trans.__('Stopped after %1 of %2', cells.length, total));
  }
  return words.join(' · ');
}

/** How far it is, and what is not the same; nothing if the session repeats none. */
export function createComparison(options: IComparisonOptions): Widget {
  return createSessionPart(options.session, 'jp-AgentExecComparison', () => {
    const { comparison } = options.session;
    return comparison && <Summary {...options} comparison={comparison} />;
  });
}

function Summary(
  props: IComparisonOptions & { comparison: IRerun }
): JSX.Element {
  const { api, comparison, execute, onError, session, trans } = props;
  const { cells, inputs, of, session_id } = comparison;
  const stop = () => void api.closeSession(session_id).catch(onError);
  const open = (args: ReadonlyJSONObject) => () =>
    void execute(CommandIDs.openPanel, args);
  /** What shows a cell, or else the one before; undefined if there is neither. */
  const showing = ({ execution_id: now, of: before }: IRerunCell) =>
    now !== null
      ? () => session.reveal(now)
      : before !== null
        ? open({ execution_id: before })
        : undefined;
  return (
    <>
      <div role="status">{progressText(comparison, trans)}</div>
      {comparison.status === 'running' && (
        <Link label={trans.__('Stop')} onClick={stop} />
      )}
      {of !== null && (
        <Link
          label={trans.__('Show the session before')}
          onClick={open({ session_id: of })}
        />
      )}
      <ul>
        {inputs.map(({ path, verdict }) => (
          <li key={path}>
            {trans.__('Uploaded file:')} <bdi>{inOneLine(path)}</bdi>,{' '}
            {verdictText(verdict, trans)}
          </li>
        ))}
        {cells.map(
          (cell, at) =>
            cell.verdict !== 'same' && (
              <li key={cell.cell_id}>
                <Link
                  label={trans.__('Cell %1', at + 1)}
                  onClick={showing(cell)}
                />
                {': '}
                {[verdictText(cell.verdict, trans), cell.reason ?? '']
                  .filter(Boolean)
                  .map(inOneLine)
                  .join('. ')}
              </li>
            )
        )}
      </ul>
    </>
  );
}

/** A button that looks like a link, or only its label if there is nothing to do. */
function Link({
  label,
  onClick
}: {
  label: string;
  onClick: (() => void) | undefined;
}): JSX.Element {
  return onClick ? (
    <button type="button" className="jp-AgentExec-link" onClick={onClick}>
      {label}
    </button>
  ) : (
    <>{label}</>
  );
}

/** How an execution's outputs compare, and on demand what they were before. */
export class CellComparison extends Panel {
  /**
   * @param _id - The execution.
   * @param _options - Its session, and what outputs are rendered with.
   */
  constructor(
    private readonly _id: string,
    private readonly _options: IComparisonOptions
  ) {
    super();
    const { session } = _options;
    this.addWidget(new Details(session, () => this._lines()));
    session.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  private get _cell(): IRerunCell | null {
    const cells = this._options.session.comparison?.cells ?? [];
    return cells.find(each => each.execution_id === this._id) ?? null;
  }

  private _lines(): HTMLElement[] {
    const { _cell: cell } = this;
    if (cell === null) {
      return [];
    }
    const { execute, trans } = this._options;
    const line = element('div', 'jp-AgentExecComparison-verdict');
    line.append(iconElement(ICONS[cell.verdict]));
    line.append(element('strong', '', verdictText(cell.verdict, trans)));
    if (cell.of !== null) {
      const args = { execution_id: cell.of };
      const show = () => void execute(CommandIDs.openPanel, args);
      line.append('·', linkButton(trans.__('Show the cell before'), show));
    }
    const lines: HTMLElement[] = [line];
    if (cell.reason !== null) {
      lines.push(element('div', '', inOneLine(cell.reason)));
    }
    for (const { diff, what } of cell.differences) {
      lines.push(element('div', '', inOneLine(what)));
      if (diff) {
        const pre = element('pre', 'jp-AgentExecComparison-diff');
        pre.tabIndex = 0; // it scrolls, also with the keys
        pre.setAttribute('role', 'group');
        pre.setAttribute('aria-label', inOneLine(what));
        // Without the two lines of its head
        pre.textContent = diff.split('\n').slice(2).join('\n');
        showHidden(pre, {}, trans);
        lines.push(pre);
      }
    }
    return lines;
  }

  /** Once something differs, offer what there was before. */
  private _onChanged(): void {
    const { of = null, differences = [] } = this._cell ?? {};
    if (of === null || differences.length === 0 || this.widgets.length > 1) {
      return;
    }
    const label = this._options.trans.__('Outputs before');
    // What an image shows is not in the words.
    const isOpen = differences.some(({ what }) => what.includes('(image/'));
    this.addWidget(new Fold(label, () => this._outputsOf(of), isOpen));
  }

  /** An execution's outputs, which are read now. */
  private _outputsOf(id: string): Widget {
    const { api, onError } = this._options;
    const model = new OutputAreaModel({ trusted: false });
    const rendermime = untrusted(this._options.rendermime);
    const area = new SimplifiedOutputArea({ model, rendermime });
    area.disposed.connect(() => model.dispose());
    const read = async () => {
      const { cell } = await api.getExecution(id);
      if (!area.isDisposed) {
        model.fromJSON(cell.outputs);
      }
    };
    read().catch(onError);
    return area;
  }
}
