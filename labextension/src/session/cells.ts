/** An execution as a cell of its session's notebook. */
import type * as nbformat from '@jupyterlab/nbformat';
import { METADATA_KEY } from '../api/cellrecord';
import type { IExecution, IExecutionModel, ILeftOut } from '../tokens';
import { leftOutOutput } from './leftout';

/** Of a session that has run nothing yet: JupyterLab would put in a cell to write in. */
export const EMPTY = 'agent-exec-empty';

/** Types that are programs, or data for one. */
const PROGRAMS =
  /^((application|text)\/javascript|application\/(geo\+json|vnd\.(plotly|vega|vegalite|bokehjs|holoviews|jupyter\.widget)[\w.+-]*))$/;

/** What stands in place of outputs: the same object for the same output. */
const placeholders = new WeakMap<nbformat.IOutput, nbformat.IOutput>();

/** The cell of an execution. */
export function cellOf(model: IExecutionModel): nbformat.ICodeCell {
  const { id, execution_count, source } = model.execution;
  return {
    cell_type: 'code',
    id,
    source,
    // A copy of it can be deleted: JupyterLab leaves this out.
    metadata: { [METADATA_KEY]: recordOf(model.execution), deletable: false },
    outputs: [...outputsOf(model)],
    execution_count
  };
}

/** The cell of a session without executions, which can only be read. */
export function emptyCell(text: string): nbformat.IRawCell {
  return {
    cell_type: 'raw',
    id: EMPTY,
    source: text,
    metadata: { deletable: false, editable: false }
  } as nbformat.IRawCell;
}

/** What the badge reads: the server's record, as far as it has got since. */
export function recordOf(execution: IExecution): nbformat.ICellMetadata {
  const { cell, execution_count, left_out, reason, started_at, status } =
    execution;
  const record = cell.metadata?.[METADATA_KEY] as
    { held?: string[] } | undefined;
  const held = [...(record?.held ?? []), ...programsIn(left_out)];
  return {
    ...record,
    execution_count,
    reason,
    started_at,
    status,
    outputs: held.length > 0 ? 'held' : 'inert',
    held
  } as unknown as nbformat.ICellMetadata;
}

function programsIn(leftOut: readonly ILeftOut[]): string[] {
  return leftOut
    .flatMap(({ mimetypes }) => mimetypes)
    .filter(each => PROGRAMS.test(each));
}

/** The outputs, with others in place of those that the server left out. */
export function outputsOf({
  execution: { id, images, left_out },
  opened,
  outputs
}: IExecutionModel): readonly nbformat.IOutput[] {
  const leftOut = new Set(left_out.map(({ index }) => index));
  return outputs.map((output, index) => {
    const data = (output.data ?? {}) as nbformat.IMimeBundle;
    const isImage = images.some(
      each => each.output === index && each.url && !(each.mimetype in data)
    );
    const says = Object.keys(data).some(each => each !== 'text/plain');
    if (opened.has(index) || (!isImage && (!leftOut.has(index) || says))) {
      return output;
    }
    const known = placeholders.get(output) ?? leftOutOutput(id, index, isImage);
    placeholders.set(output, known);
    return known;
  });
}
