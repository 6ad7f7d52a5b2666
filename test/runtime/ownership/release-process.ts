import { setTimeout as pause } from 'node:timers/promises';
import { pino } from 'pino';
import { RefoldError } from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { seeded } from '../../support/account-traffic.ts';
import { applicationOf } from '../../support/releases.ts';
import type { WorkerProcessOptions } from '../../support/worker-processes.ts';

// A process of a release, which writes payments as long as the budget allows: node release-process.ts OPTIONS
const { url, owner, deployment }: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
if (!deployment) throw new TypeError('a deployment is needed');
const { release, maintain, seed } = deployment;
const db = createDatabase({ url, maxConnections: 2 });
const app = applicationOf(release, (position, amount) =>
  db.query({ text: 'insert into letters (position, mills) values ($1, $2)', values: [position, amount] }),
);
const runtime = await startRuntime({
  config: app.config,
  url,
  owner,
  development: false,
  maintain,
  logger: pino({ level: process.env.LOG ?? 'error' }),
});
let isStopping = false;
process.once('SIGTERM', () => {
  isStopping = true;
  void runtime.stop().then(() => process.exit(0));
});
process.stdout.write('started\n');

const random = seeded(seed);
const drawn = (values: readonly string[]) => values[Math.floor(random() * values.length)] ?? '';

async function isAllowed(): Promise<boolean> {
  const text = 'update budget set remaining = remaining - 1 where remaining > 0 returning remaining';
  return (await db.query({ text })).length > 0;
}

async function write(): Promise<unknown> {
  const amount = 1000 * (1 + Math.floor(random() * 9));
  const [from, way] = [drawn(['a', 'b', 'c']), random()];
  if (way < 0.35) {
    const events = [app.payment(amount, null)];
    return runtime.log.append({ family: app.ledger, streamId: from, events });
  }
  if (way < 0.7) return runtime.execute(app.pay, { id: from, amount });
  return runtime.execute(app.move, { from, to: drawn(['a', 'b', 'c'].filter((id) => id !== from)), amount });
}

// What writers meet anyway, and the refusal that is tested.
const expected = new Set(['PAYLOAD_VERSION_UNKNOWN', 'CONCURRENCY_CONFLICT', 'STREAM_LOCKED']);

while (!isStopping) {
  try {
    if (await isAllowed()) await write();
    else await pause(10);
  } catch (error) {
    const isExpected = error instanceof RefoldError && expected.has(error.code);
    if (!isStopping && !isExpected) process.stdout.write(`${JSON.stringify({ msg: `a payment failed: ${error}` })}\n`);
  }
}
