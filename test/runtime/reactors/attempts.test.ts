import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  defineReactor,
  defineState,
  type Reactor,
  type ReactorContext,
  type ReactorErrorPolicy,
} from '../../../src/index.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { append, createReactorSetting, type ReactorSetting, settled, status } from '../../support/reactor-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses } from '../../support/worker-processes.ts';

let setting: ReactorSetting;
let db: Database;
const workers = createWorkerProcesses('runtime/reactors/deadly-process.ts');
const step = { actor: 'ann', reason: 'fixed' };

beforeEach(async () => {
  setting = await createReactorSetting();
  db = createDatabase({ url: setting.database.url });
});
afterEach(async () => {
  await workers.killAll();
  await db.close();
  await setting.close();
});

const reactorOf = (
  handle: (amount: string, context: ReactorContext) => unknown,
  onError: ReactorErrorPolicy | 'stop' = 'stop',
): Reactor =>
  defineReactor({
    name: 'deadly',
    events: account,
    from: 'beginning',
    handle: { Credited: async ({ payload }, context) => void (await handle(payload.amount, context)) },
    onError,
  });

test('an event that ends its process becomes a dead letter after the declared attempts, and everything else continues', async () => {
  const handled: string[] = [];
  const fixed = reactorOf((amount) => handled.push(amount), { policy: 'dead-letter' });
  const runtime = await setting.start([fixed], { maintain: false });
  await append(runtime, 'a', '666', '1');
  await append(runtime, 'b', '2');
  for (const owner of ['first', 'second']) {
    const worker = await workers.start({ url: setting.database.url, owner });
    await worker.ended;
  }
  const third = await workers.start({ url: setting.database.url, owner: 'third' });
  await settled(runtime);
  const letters = await runtime.reactors.deadLetters('deadly');
  expect(letters.map(({ position, attempts, error }) => [position, attempts, error?.message])).toEqual([
    [1n, 2, expect.stringContaining("failed 2 times: the process ended 2 times while it handled 'Credited'")],
    [2n, 0, undefined],
  ]);
  expect(await status(runtime)).toMatchObject({ state: 'running', owner: 'third', handled: 1n, deadLetters: 2 });
  await third.end('SIGTERM');

  // With other code, the dead letters are handled and counted.
  await setting.start([fixed]);
  await runtime.reactors.redeliver('deadly', 'retry', step);
  await until(async () => (await status(runtime))?.deadLetters === 0);
  expect(handled).toEqual(['666', '1']);
  expect(await status(runtime)).toMatchObject({ handled: 3n });
}, 900_000); // processes, one after another, on a machine that may be busy

test("with 'stop', a reactor stops at an event that has ended its process, also after restarts, and tries it again when it is resumed", async () => {
  const attempts: number[] = [];
  const reactor = reactorOf((_, { attempt }) => attempts.push(attempt));
  const before = await setting.start([reactor], { maintain: false });
  await append(before, 'a', '666');
  // One attempt has failed, and six more have ended a process each. By default, five more may follow the first.
  await db.query({
    text: "insert into refold.reactor_attempts (reactor, epoch, process, events) values ('deadly', 0, 'another', $1::jsonb)",
    values: [JSON.stringify({ 1: { failed: 1, lost: 5, running: true } })],
  });
  for (let restart = 0; restart < 2; restart++) {
    const runtime = await setting.start([reactor]);
    // Without an owner, the former process has stopped it.
    await until(async () => {
      const { state, owner = null } = (await status(runtime)) ?? {};
      return state === 'stopped' && owner !== null;
    });
    expect((await status(runtime))?.error?.message).toContain(
      "failed 7 times: the process ended 6 times while it handled 'Credited'",
    );
    expect(attempts).toEqual([]);
    if (restart === 0) {
      await setting.stop(runtime);
      continue;
    }
    await runtime.reactors.resume('deadly', step);
    await settled(runtime);
    expect(attempts).toEqual([1]);
    await append(runtime, 'a', '1');
    await settled(runtime);
    expect(attempts).toEqual([1, 1]);
  }
});

test('attempts are kept over restarts; one that a stop ended does not count', async () => {
  const attempts: number[] = [];
  let isHeld = true;
  const reactor = reactorOf(
    (_, { attempt, signal }) => {
      attempts.push(attempt);
      if (attempt === 2 && isHeld)
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      throw new Error('not yet');
    },
    { policy: 'dead-letter', retries: [{ times: 3, first: 1, maxPause: 1 }] },
  );
  const first = await setting.start([reactor], { stopTimeout: 0 });
  await append(first, 'a', '1');
  await until(() => attempts.length === 2);
  await setting.stop(first);
  isHeld = false;
  const second = await setting.start([reactor]);
  await settled(second);
  expect(attempts).toEqual([1, 2, 2, 3, 4]);
  expect((await second.reactors.deadLetters('deadly')).map((letter) => letter.attempts)).toEqual([4]);
});

test('while a retried dead letter waits for its next attempt, other events are handled', async () => {
  const handled: string[] = [];
  let isRetried = false;
  let tries = 0;
  const reactor = reactorOf(
    (amount) => {
      if (amount !== '13') return handled.push(amount);
      tries++;
      throw new Error('bad luck');
    },
    { policy: 'dead-letter', retries: [{ on: () => isRetried, times: 1, first: 3_600_000 }] },
  );
  const runtime = await setting.start([reactor]);
  await append(runtime, 'a', '13');
  await settled(runtime);
  isRetried = true;
  await runtime.reactors.redeliver('deadly', 'retry', step);
  await until(() => tries === 2);
  await append(runtime, 'a', '1');
  await append(runtime, 'b', '2');
  await settled(runtime);
  expect(handled).toEqual(['2']);
  expect((await runtime.reactors.deadLetters('deadly')).map(({ requested }) => requested)).toEqual(['retry', null]);
  expect(tries).toBe(2);
});

test('the state after an event is the same at every attempt, whatever is appended to its stream and to others meanwhile', async () => {
  const sum = defineState(account, () => ({ sum: 0 }), {
    Credited: (state, { payload }) => ({ sum: state.sum + Number(payload.amount) }),
  });
  const read: string[] = [];
  const before = await setting.start([], { maintain: false });
  await append(before, 'a', '1');
  await append(before, 'b', '10');
  await append(before, 'a', '2');
  const reactor = reactorOf(
    async (amount, { attempt, stateAfter }) => {
      if (Number(amount) >= 100) return;
      read.push(`${amount}: ${(await stateAfter(sum)).sum}, b: ${(await stateAfter(sum, 'b')).sum}`);
      await append(before, 'a', '100');
      await append(before, 'b', '1000');
      if (attempt < 3) throw new Error('once more');
    },
    { policy: 'stop', retries: [{ times: 2, first: 1 }] },
  );
  await settled(await setting.start([reactor]));
  const each = ['1: 1, b: 0', '2: 3, b: 10', '10: 10, b: 10'];
  expect(read.toSorted()).toEqual(each.flatMap((line) => [line, line, line]).toSorted());
});
