import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ChangeCursor } from '../../../src/projections/queries/change-cursor.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import {
  createInlineSetting,
  creditOf,
  type InlineSetting,
  open,
  statusOf,
  untilLive,
} from '../../support/inline-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { pull } from './live-setting.ts';

let setting: InlineSetting;

beforeEach(async () => {
  setting = await createInlineSetting();
});
afterEach(() => setting.close());

const columns = ['accountId', 'movements'];

/** An account with an event that a leaving inline version has not folded yet, because no process maintains it. */
async function leftOut() {
  const worker = await setting.start([inlineBalance]);
  await untilLive(worker, inlineBalance);
  await setting.stop(worker);
  const gateway = await setting.start([inlineBalance], { maintain: false });
  await open(gateway, 'ada');
  // A process of an older deployment, which does not know the version.
  const { position } = await createEventLog(gateway.db, [account]).append(creditOf('ada'));
  expect((await statusOf(gateway, inlineBalance))?.inline).toBe('leaving');
  return { gateway, position };
}

test('a feed that begins while appends leave an inline version out gets their changes later', async () => {
  const { gateway, position } = await leftOut();
  const feed = gateway.live.changes(
    inlineBalance,
    { where: null, columns, snapshot: true, since: null },
    { after: null },
  );
  const first = await pull(feed);
  expect(first.changes).toMatchObject([{ key: ['ada'], row: { movements: 0 } }]);
  expect(first.cursor?.position).toBeLessThan(position);
  // A client that leaves and returns with its cursor.
  await feed.return?.();
  await setting.start([inlineBalance]);
  const resumed = gateway.live.changes(
    inlineBalance,
    { where: null, columns, snapshot: true, since: first.cursor as ChangeCursor },
    { after: null },
  );
  let next = await pull(resumed);
  // A message without changes confirms the cursor.
  while (next.changes.length === 0) next = await pull(resumed);
  expect(next).toMatchObject({ reset: false, changes: [{ key: ['ada'], row: { movements: 1 } }] });
  await resumed.return?.();
});

test('a subscription after the position of an event that an inline version leaves out begins with it', async () => {
  const { gateway, position } = await leftOut();
  const rows = gateway.live.row(inlineBalance, ['ada'], columns, { after: position });
  const first = pull(rows);
  await setting.start([inlineBalance]);
  expect(await first).toMatchObject({ row: { movements: 1 } });
  await rows.return?.();
});
