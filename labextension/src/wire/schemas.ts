/**
 * The shapes of requests and answers, generated from the server's OpenAPI
 * document by scripts/wire.mjs: `make wire` writes this file again.
 */
import type * as nbformat from '@jupyterlab/nbformat';

export type Schemas = {
  /**
   * The program that asks.
   *
   * It says these of itself; they are shown and recorded, and no right follows from them.
   */
  Agent: {
    name: string;
    version: string | null;
    model: string | null;
  };
  /** What became of an execution's asking for approval. */
  Approval: {
    status: 'approved' | 'asked' | 'expired' | 'rejected' | 'withdrawn';
    asked_at: string;
    expires_at: string;
    kernel_id: string | null;
    incarnation: number;
    before: string | null;
    decided_at: string | null;
    decided_by: string | null;
    reason: string | null;
    asked_source: string | null;
  };
  /** What agents must ask for, by the kind of their target. */
  ApprovalPolicy: {
    scratch: 'always' | 'first' | 'none';
    notebook: 'always' | 'first' | 'none';
    kernel: 'always' | 'first' | 'none';
    forced: ('kernel' | 'notebook' | 'scratch')[];
  };
  /** What asks for approval now, and what has to. */
  Approvals: {
    executions: Schemas['Execution'][];
    policy: Schemas['ApprovalPolicy'];
    paused: Schemas['Pause'] | null;
    needs_passphrase: boolean;
  };
  /** The most that an agent may use with a token; null is the server's own bound. */
  Caps: {
    executions_per_minute: number | null;
    concurrent_executions: number | null;
    wall_seconds: number | null;
    output_bytes: number | null;
    kernels: number | null;
    completion: boolean | null;
  };
  /** Where a session's journal ends. Keep it to prove later that nothing was cut off. */
  Chain: {
    head: string;
    length: number;
  };
  /** What an execution changed besides its outputs. */
  Changes: {
    variables: Schemas['VariableChange'][];
    more_variables: number;
    files: Schemas['FileChange'][];
    more_files: number;
  };
  /** How to hand a token to an agent: text to paste, with the secret in it. */
  Configuration: {
    name: string;
    language: 'json' | 'python' | 'shell';
    text: string;
  };
  /** What became of an execution's cell in a notebook. */
  Document: {
    path: string;
    cell_id: string | null;
    via: ('collaboration' | 'contents' | 'tab') | null;
    status: 'discarded' | 'not_written' | 'writing' | 'written';
    outputs: 'accepted' | 'discarded' | 'held' | 'inert';
    reason: string | null;
  };
  /** One source, run once. */
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
    error: Schemas['ExecutionError'] | null;
    values: {
      [key: string]: Schemas['Value'];
    } | null;
    kernel: Schemas['ExecutionKernel'] | null;
    agent: Schemas['Agent'];
    username: string;
    token: Schemas['TokenRef'] | null;
    timeout: number | null;
    accepted_at: string;
    started_at: string | null;
    finished_at: string | null;
    duration: number | null;
    outputs_complete: boolean;
    omitted: Schemas['Omitted'];
    interrupt_ignored: boolean;
    waiting_for: Schemas['WaitingFor'] | null;
    input: Schemas['Input'] | null;
    step: Schemas['StepOf'] | null;
    document: Schemas['Document'] | null;
    chain: Schemas['Chain'];
    approval: Schemas['Approval'] | null;
    revises: string | null;
    review: Schemas['Review'] | null;
    changes: Schemas['Changes'] | null;
    source_sha256: string;
    cell: Pick<nbformat.ICodeCell, 'outputs'> & Partial<nbformat.ICodeCell>;
    text: string;
    images: Schemas['Image'][];
    left_out: Schemas['LeftOut'][];
  };
  /** The exception that ended an execution, as the kernel told it. */
  ExecutionError: {
    ename: string;
    evalue: string;
    traceback: string[];
  };
  /** The kernel in which an execution ran. */
  ExecutionKernel: {
    id: string;
    name: string;
    incarnation: number;
    restarted: boolean;
    reason:
      | (
          | 'changed'
          | 'culled'
          | 'died'
          | 'interrupt_ignored'
          | 'restarted'
          | 'shut_down'
        )
      | null;
  };
  /** A session's executions in order. */
  ExecutionList: {
    executions: Schemas['Execution'][];
    next_after: number | null;
  };
  /** A file that was written while an execution ran. */
  FileChange: {
    path: string;
    bytes: number;
    modified_at: string;
    url?: string | null;
  };
  /** An image among an execution's outputs. */
  Image: {
    mimetype: string;
    width: number | null;
    height: number | null;
    bytes: number;
    url: string | null;
    output: number;
  };
  /** Images of the history: a session's in order, else the newest first. */
  ImageList: {
    images: Schemas['RecordedImage'][];
    next_after: string | null;
    indexing: Schemas['Indexing'] | null;
  };
  /** How far a rebuild of the history's index has come; the newest sessions are indexed first. */
  Indexing: {
    done: number;
    total: number;
  };
  /** What code asks for while it runs. */
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
    after_seq: number;
    execution_id: string | null;
    text: string | null;
  };
  /** Entries of a session's journal that are not part of executions' cells, in order. */
  JournalEventList: {
    events: Schemas['JournalEvent'][];
    next_after: number | null;
  };
  /** A kernel that runs, without a document. */
  KernelTarget: {
    kind: 'kernel';
    kernel_id: string;
  };
  /** An output that an answer leaves out, since it is large. */
  LeftOut: {
    index: number;
    bytes: number;
    mimetypes: string[];
  };
  /** Bounds on each execution of a session; null takes the server's default. */
  Limits: {
    timeout: number | null;
    queue_timeout: number | null;
    max_output_bytes: number | null;
    restart_if_interrupt_ignored: boolean | null;
  };
  /** Give an agent a token of its own. */
  MintToken: {
    label: string;
    scopes: string[];
    expires_in: number;
    approval: ('always' | 'first' | 'none') | null;
    caps?: Schemas['Caps'];
  };
  /** A token that has just been minted. The secret is told this once. */
  MintedToken: {
    token: Schemas['Token'];
    secret: string;
    configurations: Schemas['Configuration'][];
  };
  /** A person's notebook, and the kernel it has. */
  NotebookTarget: {
    kind: 'notebook';
    path: string;
    kernel_name: string | null;
    create: boolean;
  };
  /** What was left out of an execution's outputs, exactly. */
  Omitted: {
    bytes: number;
    lines: number;
    outputs: number;
  };
  /**
   * A step of a running execution's outputs; apply them in order.
   *
   * Either the output at `index` becomes `output` (appended when `index` is the current length), or
   * `append` is added to the text of the stream output at `index`, or, with `truncate`, outputs from
   * `index` on are dropped.
   */
  OutputChange: {
    index: number;
    output?: nbformat.IOutput;
    append?: string;
    truncate?: true;
  };
  /** All agents wait, since a person wants it so. */
  Pause: {
    by: string;
    at: string;
  };
  /** An image of the history, and the execution that it came of. */
  RecordedImage: {
    execution_id: string;
    session_id: string;
    seq: number;
    agent: string;
    title: string | null;
    accepted_at: string;
    output: number;
    mimetype: string;
    width: number | null;
    height: number | null;
    bytes: number;
    url: string;
  };
  /** What a person thinks of an execution, or of a session. */
  Review: {
    verdict: ('approved' | 'flagged') | null;
    comment: string | null;
    by: string;
    at: string;
    whole_session: boolean;
  };
  /** A kernel of the session's own. */
  ScratchTarget: {
    kind: 'scratch';
    kernel_name: string | null;
    cwd: string | null;
    env: {
      [key: string]: string;
    };
    isolated: boolean;
    own_folder: boolean;
  };
  /** An execution that matches a search. */
  SearchHit: {
    execution_id: string;
    session_id: string;
    seq: number;
    agent: string;
    title: string | null;
    accepted_at: string;
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
  /** Executions that match a search, the newest first. */
  SearchResults: {
    hits: Schemas['SearchHit'][];
    next_after: string | null;
    indexing: Schemas['Indexing'] | null;
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
    client_id: string | null;
    limits: Schemas['Limits'];
    status: 'closed' | 'open';
    close_reason: string | null;
    username: string;
    access: 'full' | 'token';
    path: string | null;
    record_people: 'off' | 'outputs' | 'source';
    kernel: Schemas['SessionKernel'] | null;
    executions: number;
    opened_at: string;
    last_activity_at: string;
    closed_at: string | null;
    chain: Schemas['Chain'];
    approval: 'always' | 'first' | 'none';
    approved_until: string | null;
    asking: number;
    unreviewed: number;
    review: Schemas['Review'] | null;
    token: Schemas['TokenRef'] | null;
    allow_stdin: boolean;
    preloaded: string[];
  };
  /** The kernel of a session. */
  SessionKernel: {
    id: string;
    name: string;
    execution_state: 'busy' | 'dead' | 'idle' | 'starting';
    incarnation: number;
  };
  /** Sessions: the open ones first, then the closed, each the newest first. */
  SessionList: {
    sessions: Schemas['Session'][];
    next_after: string | null;
    indexing: Schemas['Indexing'] | null;
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
  /** Which one it is of several executions that were asked for at once. */
  StepOf: {
    first: string;
    number: number;
    of: number;
  };
  /** A range of an execution's whole text. */
  Text: {
    text: string;
    offset: number;
    next_offset: number | null;
    total_bytes: number;
    omitted_bytes: number;
  };
  /** An agent token, without its secret. */
  Token: {
    id: string;
    label: string;
    scopes: string[];
    approval: ('always' | 'first' | 'none') | null;
    caps: Schemas['Caps'];
    username: string;
    status: 'active' | 'expired' | 'revoked';
    created_at: string;
    expires_at: string;
    revoked_at: string | null;
    last_used_at: string | null;
  };
  /** Tokens, the newest first. */
  TokenList: {
    tokens: Schemas['Token'][];
  };
  /** The token with which a session was opened. */
  TokenRef: {
    id: string;
    label: string;
  };
  /** Decisions that show this are taken. Keep it in memory only. */
  Unlocked: {
    unlock: string;
    expires_at: string;
  };
  /** What an expression was after an execution: JSON where it is, else a description. */
  Value: {
    status: 'error' | 'ok';
    json?: unknown;
    type: string | null;
    shape: number[] | null;
    dtype: string | null;
    dtypes: {
      [key: string]: string;
    } | null;
    head: Record<string, never>[] | null;
    range: number[] | null;
    repr: string | null;
    truncated: boolean;
    ename: string | null;
    evalue: string | null;
  };
  /** A variable that an execution made, changed or removed, as far as it can be told cheaply. */
  VariableChange: {
    name: string;
    change: 'added' | 'changed' | 'removed';
    type: string | null;
    shape: number[] | null;
    length: number | null;
    preview: string | null;
  };
  /** Behind whom an execution waits for its turn. */
  WaitingFor: {
    who: 'agent' | 'approval' | 'kernel' | 'pause' | 'person';
    agent: string | null;
    execution_id: string | null;
    since: string | null;
  };
};
