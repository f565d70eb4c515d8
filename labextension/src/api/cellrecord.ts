/** What the metadata of a notebook's cell says of an agent's execution. */
import { toHexString } from 'lib0/buffer';
import { digest } from 'lib0/hash/sha256';
import type { ICellRecord, PlacedOutputs, Status } from '../wire';

/** The key of our metadata in a cell. */
export const METADATA_KEY = 'agent_exec';

/** What may be in a cell, as far as it is known here. */
const PLACED: ReadonlySet<unknown> = new Set<PlacedOutputs>([
  'inert',
  'held',
  'accepted'
]);

type Fields = Readonly<Record<string, unknown>>;

/**
 * Read a cell's `metadata.agent_exec`.
 *
 * Anybody may have written it: what is not as it should be is left out, and
 * without the ids there is no record.
 */
export function readCellRecord(metadata: unknown): ICellRecord | null {
  const fields = asFields(metadata);
  const agent = asFields(fields?.agent);
  const name = text(agent?.name);
  const sessionId = text(fields?.session_id);
  const executionId = text(fields?.execution_id);
  const status = text(fields?.status);
  if (!fields || !name || !sessionId || !executionId || !status) {
    return null;
  }
  return {
    session_id: sessionId,
    execution_id: executionId,
    seq: count(fields.seq),
    agent: { name, version: text(agent?.version), model: text(agent?.model) },
    username: text(fields.username) ?? '',
    purpose: text(asFields(fields.claim)?.purpose),
    status: status as Status,
    reason: text(fields.reason),
    accepted_at: moment(fields.accepted_at) ?? '',
    started_at: moment(fields.started_at),
    finished_at: moment(fields.finished_at),
    source_sha256: text(fields.source_sha256) ?? '',
    was_edited: text(asFields(fields.approval)?.asked_source_sha256) !== null,
    execution_count: count(fields.execution_count),
    outputs: PLACED.has(fields.outputs)
      ? (fields.outputs as PlacedOutputs)
      : 'inert',
    held: Array.isArray(fields.held)
      ? fields.held.filter((each): each is string => typeof each === 'string')
      : [],
    cell_id: text(fields.cell_id)
  };
}

/**
 * Whether a source is another than the one that ran.
 *
 * WebCrypto would do this too, but only on pages that came over https or from
 * the same machine, and only asynchronously. lib0 is on the page anyway.
 */
export function isEdited(
  record: Pick<ICellRecord, 'source_sha256'>,
  source: string
): boolean {
  return (
    record.source_sha256 !== '' && record.source_sha256 !== sourceHash(source)
  );
}

/** The SHA-256 of a source, as the server tells it. */
export function sourceHash(source: string): string {
  return toHexString(digest(new TextEncoder().encode(source)));
}

/**
 * Whether somebody ran the cell again after the agent: its outputs are theirs.
 *
 * While it runs, and after it was cleared, a cell has no count.
 */
export function isRunAgain(
  record: ICellRecord,
  executionCount: number | null
): boolean {
  return (
    record.execution_count !== null &&
    executionCount !== null &&
    record.execution_count !== executionCount
  );
}

function asFields(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null ? (value as Fields) : null;
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) ? value : null;
}

function moment(value: unknown): string | null {
  const at = text(value);
  return at !== null && !Number.isNaN(Date.parse(at)) ? at : null;
}
