import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Projection } from '../../../src/index.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import type { Transaction } from '../../../src/store/postgres/transaction.ts';
import { openTransaction } from '../../support/held-locks.ts';
import { inlineBalance, inlineOpenings } from '../../support/inline-domain.ts';
import {
  createInlineSetting,
  creditOf,
  expectRight,
  type InlineSetting,
  open,
  untilLive,
} from '../../support/inline-setting.ts';
import { account } from '../../support/sample-domain.ts';

const readSchema = 'read_models';
const projections: readonly Projection[] = [inlineBalance, inlineOpenings];

let setting: InlineSetting;
let runtime: Runtime;
let others: Database;

beforeEach(async () => {
  setting = await createInlineSetting();
  runtime = await setting.start(projections);
  await untilLive(runtime, ...projections);
  others = createDatabase({ url: runtime.db.url, maxConnections: 4, applicationName: 'others' });
  for (let number = 0; number < 12; number++) await open({ log: runtime.log }, `a${number}`, `owner ${number}`);
});
afterEach(async () => {
  await others.close();
  await setting.close();
});

const logOf = (lockTimeoutMs: number): EventLog =>
  createEventLog(runtime.db, [account], {
    lockTimeoutMs,
    inline: { db: runtime.db, readSchema, projections, freeze: false },
  });

const openedBy = (streamId: string, owner: string) =>
  ({ family: account, streamId, events: [{ type: 'Opened', payload: { owner } }] }) as const;

test.each([
  [
    'the row of an append that is not committed',
    (tx: Transaction) => runtime.log.append(creditOf('a0'), tx),
    creditOf('a0'),
    'the row ["a0"] of inline_balance@1',
  ],
  [
    'a stream',
    (tx: Transaction) => tx.query({ text: `select from refold.streams where stream_id = 'a0' for update` }),
    creditOf('a0'),
    undefined,
  ],
  [
    'a row of the read table',
    (tx: Transaction) =>
      tx.query({ text: `select from read_models.inline_balance_v1 where account_id = 'a0' for update` }),
    creditOf('a0'),
    'the row ["a0"] of inline_balance@1',
  ],
  [
    'a row that many streams feed',
    (tx: Transaction) => runtime.log.append(openedBy('new', 'Ada'), tx),
    openedBy('other', 'Bob'),
    'the row ["*"] of inline_openings@1',
  ],
  [
    'the table',
    (tx: Transaction) => tx.query({ text: 'lock table read_models.inline_openings_v1 in share mode' }),
    openedBy('other', 'Bob'),
    'the table read_models.inline_openings_v1',
  ],
])('while another transaction holds %s, appends that do not need it are written', async (_, hold, held, inline) => {
  const [patient, impatient] = [logOf(300_000), logOf(250)]; // the patient one is refused only after the end of the test
  const other = await openTransaction(others, hold);
  expect(await impatient.append(held).catch((error: unknown) => error)).toMatchObject({
    code: 'STREAM_LOCKED',
    fields: { ...(inline === undefined ? {} : { inline }), streams: [{ streamId: held.streamId }] },
  });
  const late = patient.append(held);
  const callers = Array.from({ length: 11 }, async (__, caller) => {
    for (let number = 0; number < 10; number++) await patient.append(creditOf(`a${caller + 1}`));
  });
  await Promise.all(callers);
  await other.end('commit');
  await late;
  for (const projection of projections) await expectRight(runtime, projection);
});
