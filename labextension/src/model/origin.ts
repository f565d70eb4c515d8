/** Where a cell was copied from, as the copy's metadata tell. */
import type * as nbformat from '@jupyterlab/nbformat';
import type { PartialJSONObject } from '@lumino/coreutils';
import { inertOutputs } from './inert';
import type { IAgent, IExecution } from '../tokens';

/**
 * The key of a copy's metadata.
 *
 * Not the key of an agent's own cells: of a copy there is nothing to accept,
 * discard or review, and nothing that an agent writes goes into it.
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

/** A person's cell with an execution's source, and its outputs if wanted. */
export function copiedCell(
  execution: IExecution,
  withOutputs: boolean
): nbformat.ICodeCell {
  const { accepted_at, agent, cell, id, session_id, source, source_sha256 } =
    execution;
  const copy = inertOutputs(withOutputs ? cell.outputs : []);
  const origin: IOrigin = {
    session_id,
    execution_id: id,
    agent,
    accepted_at,
    source_sha256,
    held: copy.held
  };
  return {
    cell_type: 'code',
    source,
    metadata: {
      // Inert as it is, it leaves the notebook's trust what it was.
      ...(withOutputs ? { trusted: true } : {}),
      [ORIGIN_KEY]: origin as unknown as PartialJSONObject
    },
    outputs: copy.outputs,
    execution_count: null
  };
}

/** Read a copy's metadata, which anybody may have written. */
export function readOrigin(metadata: unknown): IOrigin | null {
  const origin = metadata as Partial<IOrigin> | null | undefined;
  const texts = [
    origin?.session_id,
    origin?.execution_id,
    origin?.agent?.name,
    origin?.accepted_at
  ];
  const valid =
    texts.every(each => typeof each === 'string') &&
    !Number.isNaN(Date.parse(origin?.accepted_at ?? ''));
  return valid ? (origin as IOrigin) : null;
}
