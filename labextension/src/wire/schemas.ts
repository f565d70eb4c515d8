/**
 * The shapes of requests and answers, generated from the server's OpenAPI
 * document by scripts/wire.mjs: `make wire` writes this file again.
 */
import type * as nbformat from '@jupyterlab/nbformat';

export type Schemas = {
  /**
   * The agent's description of itself.
   *
   * It is shown and recorded, but gives no rights.
   */
  Agent: {
    name: string;
    version: string | null;
    model: string | null;
  };
  /** An execution that the approval of another also lets run. */
  AlsoApproved: {
    source: string | null;
  };
  /** The state of an execution's approval request. */
  Approval: {
    status: 'approved' | 'asked' | 'expired' | 'rejected' | 'withdrawn';
    asked_at: string;
    expires_at: string;
    kernel_id: string | null;
    incarnation: number;
    before: string | null;
    edits_cell: boolean;
    decided_by: string | null;
    asked_source: string | null;
    also: Schemas['AlsoApproved'][];
  };
  /** What goes on and what waits for a user, the approval policy, and the pause. */
  Approvals: {
    executions: Schemas['Execution'][];
    pending: Schemas['Execution'][];
    sessions: Schemas['Session'][];
    proposing: Schemas['Session'][];
    paused: Schemas['Pause'] | null;
    sinks: Schemas['SinkStatus'][];
    broken: Schemas['RecordBreak'] | null;
  };
  /** Approve an execution that waits for approval. */
  Approve: {
    source_sha256: string;
    source: string | null;
    grant: ('hour' | 'restart') | null;
    once: boolean;
  };
  /** A cell that stays as it is. */
  CellLeft: {
    cell_id: string;
    reason: string;
  };
  /** The type and source of a cell. */
  CellPart: {
    cell_type: 'code' | 'markdown' | 'raw';
    source: string;
  };
  /** The end of a session's journal. Keep it to prove later that nothing was cut off. */
  Chain: {
    head: string;
    length: number;
  };
  /** Variables that an execution changed. */
  Changes: {
    variables: Schemas['VariableChange'][];
    more_variables: number;
    not_compared: number;
  };
  /** A sleeping copy of a kernel, as the kernel was before an execution. */
  Checkpoint: {
    execution_id: string;
    at: string;
    bytes: number;
    undoable: boolean;
  };
  /** A kernel's checkpoints, oldest first. */
  CheckpointList: {
    enabled: boolean;
    reason: string | null;
    checkpoints: Schemas['Checkpoint'][];
    rescued: Schemas['Rescue'] | null;
    not_undone: string[];
  };
  /** What an agent says about the code that it runs. It is shown and recorded, not checked. */
  Claim: {
    purpose: string | null;
  };
  /** The state of an execution's cell in a notebook. */
  Document: {
    path: string;
    cell_id: string | null;
    status:
      | 'discarded'
      | 'not_written'
      | 'proposed'
      | 'unsaved'
      | 'writing'
      | 'written';
    outputs: 'accepted' | 'discarded' | 'held' | 'inert';
    reason: string | null;
    placement: 'end' | Schemas['Placement'] | null;
    follows: string[];
  };
  /** One execution of a source. */
  Execution: {
    id: string;
    session_id: string;
    seq: number;
    init: boolean;
    status:
      | 'awaiting_approval'
      | 'awaiting_input'
      | 'cancelled'
      | 'error'
      | 'interrupted'
      | 'kernel_died'
      | 'lost'
      | 'ok'
      | 'queued'
      | 'rejected'
      | 'running'
      | 'timed_out';
    reason: string | null;
    source: string;
    execution_count: number | null;
    kernel: Schemas['ExecutionKernel'] | null;
    agent: Schemas['Agent'];
    username: string;
    token: Schemas['TokenRef'] | null;
    accepted_at: string;
    started_at: string | null;
    finished_at: string | null;
    outputs_complete: boolean;
    omitted: Schemas['Omitted'];
    interrupt_ignored: boolean;
    waiting_for: Schemas['WaitingFor'] | null;
    input: Schemas['Input'] | null;
    document: Schemas['Document'] | null;
    approval: Schemas['Approval'] | null;
    trial: boolean;
    claim: Schemas['Claim'] | null;
    review: Schemas['Review'] | null;
    undone_by: string | null;
    changes: Schemas['Changes'] | null;
    source_sha256: string;
    cell: Pick<nbformat.ICodeCell, 'outputs'> & Partial<nbformat.ICodeCell>;
    images: Schemas['Image'][];
    left_out: Schemas['LeftOut'][];
    lookalikes: {
      [key: string]: {
        [key: string]: string;
      };
    };
  };
  /** The exception that ended an execution, as the kernel reported it. */
  ExecutionError: {
    ename: string;
  };
  /** The kernel in which an execution ran. */
  ExecutionKernel: {
    id: string;
    name: string;
    restarted: boolean;
    reason:
      | (
          | 'changed'
          | 'culled'
          | 'died'
          | 'interrupt_ignored'
          | 'rescued'
          | 'restarted'
          | 'shut_down'
          | 'undone'
        )
      | null;
  };
  /** A session's executions in order. */
  ExecutionList: {
    executions: Schemas['Execution'][];
    next_after: number | null;
  };
  /**
   * A user's leave for an agent to run code in a kernel without asking, in all of its sessions.
   *
   * The end of the kernel's life ends it, and so does the end of the server.
   */
  Grant: {
    until: string | null;
  };
  /** An image among an execution's outputs. */
  Image: {
    mimetype: string;
    width: number | null;
    height: number | null;
    url: string | null;
    output: number;
  };
  /** An input request of running code. */
  Input: {
    prompt: string;
    password: boolean;
    asked_at: string;
  };
  /** An entry of a session's journal that is not part of an execution's cell. */
  JournalEvent: {
    n: number;
    type: string;
    at: string;
    by: string | null;
    by_kind: 'agent' | 'person' | 'server';
    after_seq: number;
  };
  /** Journal entries of a session that are not part of executions' cells, in order. */
  JournalEventList: {
    events: Schemas['JournalEvent'][];
    next_after: number | null;
  };
  /** Keep a session's proposed edits. */
  KeepEdits: {
    ids: string[] | null;
    source: string | null;
    source_sha256: string | null;
  };
  /** Code that a user or an agent ran in a kernel. */
  KernelRun: {
    execution_count: number;
    source_sha256: string;
    execution_id: string | null;
    stale: Schemas['Staleness'] | null;
  };
  /** Code that was seen to run in a kernel, oldest first. */
  KernelRunList: {
    runs: Schemas['KernelRun'][];
  };
  /** A running kernel, without a document. */
  KernelTarget: {
    kind: 'kernel';
    kernel_id: string;
  };
  /** A large output that the answer leaves out. */
  LeftOut: {
    index: number;
    bytes: number;
    mimetypes: string[];
  };
  /** A user's notebook and its kernel. */
  NotebookTarget: {
    kind: 'notebook';
    path: string;
    kernel_name: string | null;
  };
  /** Output that was left out of an execution's outputs; the counts are exact. */
  Omitted: {
    bytes: number;
    lines: number;
    outputs: number;
    unknown: boolean;
  };
  /**
   * A change of a running execution's outputs. Apply changes in order.
   *
   * There are three kinds: `output` replaces the output at `index` (or is appended, if `index` is
   * the current length); `append` is added to the text of the stream output at `index`; `truncate`
   * drops the outputs from `index` on.
   */
  OutputChange: {
    index: number;
    output?: nbformat.IOutput;
    append?: string;
    truncate?: boolean;
  };
  /** A user's pause of all agents. */
  Pause: {
    by: string;
    at: string;
  };
  /** The place of an execution's cell in the notebook: one of `after`, `before` and `cell`. */
  Placement: {
    after: string | null;
    before: string | null;
    cell: string | null;
    source_sha256: string | null;
  };
  /** What a trial of code that waits for approval showed. The code itself has not run. */
  Preview: {
    status: 'error' | 'none' | 'ok' | 'pending' | 'timed_out';
    reason: string | null;
    outputs: Record<string, never>[];
    /**
     * @default {
     * "bytes": 0,
     * "lines": 0,
     * "outputs": 0,
     * "unknown": false
     * }
     */
    omitted: Schemas['Omitted'];
    error: Schemas['ExecutionError'] | null;
    changes: Schemas['Changes'] | null;
    seal: Schemas['Seal'] | null;
  };
  /** The edits of a notebook that an agent proposed in one request. */
  Proposal: {
    id: string;
    session_id: string;
    path: string;
    agent: Schemas['Agent'];
    username: string;
    purpose: string | null;
    edits: Schemas['ProposedEdit'][];
  };
  /** Proposals, the oldest first. */
  ProposalList: {
    proposals: Schemas['Proposal'][];
  };
  /** A proposed change of one cell. */
  ProposedEdit: {
    id: string;
    cell_id: string;
    kind: 'change' | 'clear_outputs' | 'delete' | 'insert' | 'move';
    moved: boolean;
    before: Schemas['CellPart'] | null;
    after: Schemas['CellPart'] | null;
    current: Schemas['CellPart'] | null;
    result: Schemas['CellPart'] | null;
    index: number;
    follows: string | null;
    status: 'kept' | 'obsolete' | 'open' | 'rejected' | 'replaced' | 'undone';
    fits: boolean;
    reason: string | null;
    decided_by: string | null;
    edited: boolean;
    lookalikes: {
      [key: string]: {
        [key: string]: string;
      };
    };
  };
  /** The record does not continue what the server signed, so nothing is signed any more. */
  RecordBreak: {
    name: string;
    found: string[];
  };
  /** Something that code in a trial tried, and that the seal refused. */
  Refusal: {
    kind: 'access' | 'connect' | 'signal' | 'start' | 'write';
    what: string | null;
    line: number | null;
  };
  /** Reject a session's proposed edits. */
  RejectEdits: {
    ids: string[] | null;
    reason: string | null;
  };
  /** Which variables a kernel has that died, and whose place a checkpoint took. */
  Rescue: {
    at: string;
    execution_count: number;
  };
  /** A user's review of an execution. */
  Review: {
    verdict: ('approved' | 'flagged') | null;
    comment: string | null;
    by: string;
    at: string;
  };
  /** What became of an undo of a session's changes in its notebook, or of its redo. */
  RoundUndone: {
    path: string;
    changes: number;
    without_outputs: string[];
    left: Schemas['CellLeft'][];
  };
  /** A kernel of the session's own. */
  ScratchTarget: {
    kind: 'scratch';
    kernel_name: string | null;
  };
  /** What sealed the copy of the kernel in which a trial ran. */
  Seal: {
    refused: Schemas['Refusal'][];
  };
  /** An execution that matches a search. */
  SearchHit: {
    execution_id: string;
    session_id: string;
    seq: number;
    agent: string;
    title: string | null;
    accepted_at: string;
    execution_count: number | null;
    status:
      | 'awaiting_approval'
      | 'awaiting_input'
      | 'cancelled'
      | 'error'
      | 'interrupted'
      | 'kernel_died'
      | 'lost'
      | 'ok'
      | 'queued'
      | 'rejected'
      | 'running'
      | 'timed_out';
    images: number;
    source: string;
    snippet: string;
  };
  /** Executions that match a search, newest first. */
  SearchResults: {
    hits: Schemas['SearchHit'][];
    next_after: string | null;
  };
  /** An agent session. */
  Session: {
    id: string;
    agent: Schemas['Agent'];
    target:
      | Schemas['ScratchTarget']
      | Schemas['NotebookTarget']
      | Schemas['KernelTarget'];
    title: string | null;
    status: 'closed' | 'open';
    close_reason: string | null;
    username: string;
    path: string | null;
    record_people: 'off' | 'outputs' | 'source';
    kernel: Schemas['SessionKernel'] | null;
    executions: number;
    opened_at: string;
    last_activity_at: string;
    chain: Schemas['Chain'];
    approval: 'always' | 'first' | 'none';
    grant: Schemas['Grant'] | null;
    behind: number;
    proposed: number;
    unreviewed: number;
    token: Schemas['TokenRef'] | null;
  };
  /** The kernel of a session. */
  SessionKernel: {
    id: string;
    name: string;
    execution_state: 'busy' | 'dead' | 'idle' | 'starting';
  };
  /** A list of sessions: first the open ones, then the closed ones, each newest first. */
  SessionList: {
    sessions: Schemas['Session'][];
    next_after: string | null;
  };
  /** How far the copy of the record in a sink has come. */
  SinkStatus: {
    name: string;
    is_stopping_code: boolean;
    entries_behind: number;
    error: string | null;
  };
  /** Why a cell's outputs do not fit its source, or the kernel's variables, any more. */
  Staleness: {
    certain: boolean;
    cause: 'changed' | 'edited' | 'unknown';
    names: string[];
    execution_count: number | null;
  };
  /** An execution's new status. */
  StatusChange: {
    status:
      | 'awaiting_approval'
      | 'awaiting_input'
      | 'cancelled'
      | 'error'
      | 'interrupted'
      | 'kernel_died'
      | 'lost'
      | 'ok'
      | 'queued'
      | 'rejected'
      | 'running'
      | 'timed_out';
    execution_count: number | null;
    started_at: string | null;
    waiting_for: Schemas['WaitingFor'] | null;
    input: Schemas['Input'] | null;
  };
  /** A range of an execution's complete text. */
  Text: {
    text: string;
    next_offset: number | null;
    total_bytes: number;
    omitted_bytes: number;
  };
  /** The token that opened a session. */
  TokenRef: {
    id: string;
    label: string;
  };
  /** A secret that allows decisions. Keep it in memory only. */
  Unlocked: {
    unlock: string;
  };
  /** A variable that an execution added, changed or removed. */
  VariableChange: {
    name: string;
    change: 'added' | 'changed' | 'removed';
    type: string | null;
    shape: number[] | null;
    length: number | null;
    preview: string | null;
    before: Schemas['VariableState'] | null;
  };
  /** What a variable was before it was changed or removed. */
  VariableState: {
    type: string;
    shape: number[] | null;
    length: number | null;
    preview: string | null;
  };
  /** The reason why an execution waits. */
  WaitingFor: {
    who: 'agent' | 'approval' | 'kernel' | 'pause' | 'person';
    agent: string | null;
  };
};
