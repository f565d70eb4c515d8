/** Where a cell was copied from, as the copy's metadata tell. */
import type * as nbformat from '@jupyterlab/nbformat';
import type { PartialJSONObject } from '@lumino/coreutils';
import { METADATA_KEY } from '../api/cellrecord';
import type { IAgent, IExecution } from '../wire';

/**
 * The key of a copy's metadata.
 *
 * Not the key of an agent's own cells: of a copy there is nothing to accept or
 * review, and nothing that an agent writes goes into it.
 */
export const ORIGIN_KEY = 'agent_exec_origin';

/** The execution that a cell is a copy of. */
export interface IOrigin {
  session_id: string;
  execution_id: string;
  agent: IAgent;
  accepted_at: string;
  source_sha256: string;
  /** Mime types that the copy is without. */
  held: readonly string[];
}

/**
 * A cell of the user's own with an execution's source and outputs.
 *
 * @param execution - As the server answers with an inert copy of its outputs.
 */
export function copiedCell(execution: IExecution): nbformat.ICodeCell {
  const { accepted_at, agent, cell, id, session_id, source, source_sha256 } =
    execution;
  const record = cell.metadata?.[METADATA_KEY] as
    { held?: string[] } | undefined;
  const origin: IOrigin = {
    session_id,
    execution_id: id,
    agent,
    accepted_at,
    source_sha256,
    held: record?.held ?? []
  };
  return {
    cell_type: 'code',
    source,
    metadata: {
      // Inert as it is, it leaves the notebook's trust what it was.
      trusted: true,
      [ORIGIN_KEY]: origin as unknown as PartialJSONObject
    },
    outputs: cell.outputs.map(ofNoKernel),
    execution_count: null
  };
}

/** An output that is no result of the kernel into whose notebook it goes. */
function ofNoKernel(output: nbformat.IOutput): nbformat.IOutput {
  const { data, metadata, output_type } = output;
  return output_type === 'execute_result'
    ? { output_type: 'display_data', data, metadata }
    : output;
}
