import { isEdited, isRunAgain, readCellRecord } from '../../api/cellrecord';

const METADATA = {
  session_id: 's_1',
  execution_id: 'x_1',
  seq: 1,
  agent: { name: 'analyst', version: '1.2', model: null },
  username: 'ada',
  claim: { purpose: 'To see.', tool_call_id: 7 },
  status: 'ok',
  accepted_at: '2026-01-02T03:04:05.000Z',
  started_at: '2026-01-02T03:04:05.100Z',
  finished_at: '2026-01-02T03:04:06.000Z',
  approval: { asked_source_sha256: 'ab' },
  source_sha256:
    '94754d49a21b65e6a316640a8575c784bd0f6e5728c536f5620dcd157b18c205',
  execution_count: 7,
  outputs: 'held',
  held: ['application/javascript', 7]
};

describe('readCellRecord', () => {
  it('takes what the server has written', () => {
    expect(readCellRecord(METADATA)).toEqual({
      session_id: 's_1',
      execution_id: 'x_1',
      seq: 1,
      agent: { name: 'analyst', version: '1.2', model: null },
      username: 'ada',
      purpose: 'To see.',
      status: 'ok',
      reason: null,
      accepted_at: '2026-01-02T03:04:05.000Z',
      started_at: '2026-01-02T03:04:05.100Z',
      finished_at: '2026-01-02T03:04:06.000Z',
      source_sha256: METADATA.source_sha256,
      was_edited: true,
      execution_count: 7,
      outputs: 'held',
      held: ['application/javascript'],
      cell_id: null
    });
  });

  it.each([
    undefined,
    null,
    'analyst',
    {},
    { ...METADATA, agent: 'analyst' },
    { ...METADATA, agent: { name: '' } },
    { ...METADATA, session_id: 1 },
    { ...METADATA, execution_id: null },
    { ...METADATA, status: undefined }
  ])('makes nothing of %j', metadata => {
    expect(readCellRecord(metadata)).toBeNull();
  });

  it('leaves out what is not as it should be', () => {
    const record = readCellRecord({
      ...METADATA,
      username: 7,
      claim: 'To see.',
      accepted_at: 'yesterday',
      started_at: {},
      source_sha256: null,
      approval: { asked_source_sha256: null },
      execution_count: 1.5,
      outputs: 'trusted',
      held: 'all'
    });
    expect(record).toMatchObject({
      username: '',
      purpose: null,
      accepted_at: '',
      started_at: null,
      source_sha256: '',
      was_edited: false,
      execution_count: null,
      outputs: 'inert',
      held: []
    });
    const { execution_count } = readCellRecord({
      ...METADATA,
      execution_count: '7'
    })!;
    expect(execution_count).toBeNull();
  });
});

describe('isEdited', () => {
  const record = readCellRecord(METADATA)!;

  it('compares a source with the one that ran, as UTF-8', () => {
    expect(isEdited(record, 'print("é😀")')).toBe(false);
    expect(isEdited(record, 'print("é😀") ')).toBe(true);
  });

  it('says nothing if it is not known what ran', () => {
    expect(isEdited({ ...record, source_sha256: '' }, 'x')).toBe(false);
  });
});

describe('isRunAgain', () => {
  const record = readCellRecord(METADATA)!;

  it.each([
    [7, 7, false],
    [7, 8, true],
    [7, 1, true],
    // It runs, was cleared, or never ran.
    [7, null, false],
    [null, 8, false]
  ])('of an execution %p in a cell with %p is %p', (ran, shown, expected) => {
    expect(isRunAgain({ ...record, execution_count: ran }, shown)).toBe(
      expected
    );
  });
});
