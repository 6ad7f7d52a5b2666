import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  CommandRejected,
  defineReactor,
  globalPosition,
  type Reactor,
  type ReactorContext,
  type ReactorOptions,
  type RecordedEvent,
} from '../../../src/index.ts';
import { effort } from '../../support/effort.ts';
import { append, createReactorSetting, type ReactorSetting, settled, status } from '../../support/reactor-setting.ts';
import { account, credit, openAccount } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

let setting: ReactorSetting;
const step = { actor: 'ann', reason: 'by the way' };

beforeEach(async () => {
  setting = await createReactorSetting();
});
afterEach(() => setting.close());
const start: ReactorSetting['start'] = (reactors, options) => setting.start(reactors, options);
const stop: ReactorSetting['stop'] = (runtime) => setting.stop(runtime);

/** A reactor to credits, with quick retries. */
function onCredits(
  handle: (event: RecordedEvent<string, { amount: string }>, context: ReactorContext) => unknown,
  options: Partial<ReactorOptions<typeof account>> = {},
): Reactor {
  return defineReactor({
    name: 'watch',
    events: account,
    handle: {
      Credited: async (event, context) => (await handle(event, context)) as 'ack' | 'skip' | 'stop' | undefined,
    },
    from: 'beginning',
    ...options,
  });
}

const quick = [{ times: 3, first: 1, maxPause: 5 }];

test('a reactor handles past and new events in order, and continues from its checkpoint', async () => {
  const got: string[] = [];
  const watch = onCredits(({ streamId, payload }) => got.push(`${streamId} ${payload.amount}`));
  const before = await start([], { maintain: false });
  await append(before, 'a', '1', '2');
  const runtime = await start([watch]);
  await append(runtime, 'b', '3');
  await runtime.log.append({ family: account, streamId: 'a', events: [{ type: 'Closed', payload: {} }] });
  await settled(runtime);
  expect(got).toEqual(['a 1', 'a 2', 'b 3']);
  expect(await status(runtime)).toMatchObject({ name: 'watch', state: 'running', owner: 'test', handled: 3n, lag: 0n });
  await stop(runtime);
  const again = await start([watch]);
  await append(again, 'a', '4');
  await settled(again);
  expect(got).toEqual(['a 1', 'a 2', 'b 3', 'a 4']);
});

test("a reactor from 'now' receives no past events", async () => {
  const before = await start([], { maintain: false });
  await append(before, 'a', '1');
  const got: string[] = [];
  const runtime = await start([onCredits(({ payload }) => got.push(payload.amount), { from: 'now' })]);
  await append(runtime, 'a', '2');
  await settled(runtime);
  expect(got).toEqual(['2']);
});

test('every event is handled in the order of its stream for any failures, up to the declared concurrency, and the checkpoint never passes an unhandled one', async () => {
  const events = fc.array(
    fc.record({ stream: fc.constantFrom('a', 'b', 'c', 'd'), failures: fc.integer({ min: 0, max: 3 }) }),
    { minLength: 1, maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(events, fc.integer({ min: 1, max: 5 }), fc.boolean(), async (history, concurrency, restart) => {
      const own = await createReactorSetting();
      try {
        const handled: bigint[] = [];
        const seen = new Set<bigint>();
        let atOnce = 0;
        let most = 0;
        const tries = new Map<bigint, number>();
        const watch = onCredits(
          async ({ position, payload }) => {
            most = Math.max(most, ++atOnce);
            for (let turns = Number(position) % 4; turns > 0; turns--) await turn();
            atOnce--;
            const tried = (tries.get(position) ?? 0) + 1;
            tries.set(position, tried);
            if (tried <= Number(payload.amount)) throw new Error('not yet');
            handled.push(position);
            seen.add(position);
          },
          { concurrency, onError: { policy: 'stop', retries: quick } },
        );
        let runtime = await own.start([watch]);
        for (const [index, { stream, failures }] of history.entries()) {
          await append(runtime, stream, String(failures));
          const checkpoint = (await status(runtime))?.position ?? 0n;
          for (let position = 1n; position <= checkpoint; position++) expect(seen.has(position)).toBe(true);
          if (restart && index === Math.floor(history.length / 2)) {
            await own.stop(runtime);
            runtime = await own.start([watch]);
          }
        }
        await settled(runtime);
        const first = [...new Set(handled)];
        expect(first.length).toBe(history.length);
        for (const stream of ['a', 'b', 'c', 'd']) {
          const ofStream = first.filter((position) => history[Number(position) - 1]?.stream === stream);
          expect(ofStream).toEqual(ofStream.toSorted((a, b) => (a < b ? -1 : 1)));
        }
        expect(most).toBeLessThanOrEqual(concurrency);
        if (!restart) expect(handled.length).toBe(history.length);
        await own.stop(runtime);
      } finally {
        await own.close();
      }
    }),
    { numRuns: effort(12, 4) },
  );
});

test('while one stream is retried, others continue, up to the declared concurrency', async () => {
  const gate = Promise.withResolvers<void>();
  const got: string[] = [];
  const watch = onCredits(
    async ({ streamId, payload }) => {
      if (streamId === 'slow') await gate.promise;
      if (payload.amount === '13' && !got.includes('b 2')) throw new Error('not before the other');
      got.push(`${streamId} ${payload.amount}`);
    },
    {
      concurrency: 2,
      onError: { policy: 'stop', retries: [{ times: Number.POSITIVE_INFINITY, first: 1, maxPause: 1 }] },
    },
  );
  const runtime = await start([watch]);
  await append(runtime, 'slow', '1');
  await append(runtime, 'a', '13', '14');
  await append(runtime, 'b', '1', '2');
  await until(() => got.length === 4);
  expect(got).toEqual(['b 1', 'b 2', 'a 13', 'a 14']);
  expect((await status(runtime))?.position).toBe(0n);
  gate.resolve();
  await settled(runtime);
});

test('a dead letter blocks only its stream, in order; after a retry, all events are handled and nothing is blocked', async () => {
  let mended = false;
  const got: string[] = [];
  const watch = onCredits(
    ({ streamId, payload }) => {
      if (payload.amount === '13' && !mended) throw new Error('13 is bad luck');
      got.push(`${streamId} ${payload.amount}`);
    },
    { onError: { policy: 'dead-letter', retries: quick } },
  );
  let runtime = await start([watch]);
  await append(runtime, 'a', '1', '13', '2');
  await append(runtime, 'b', '1');
  await settled(runtime);
  expect(got).toEqual(['a 1', 'b 1']);
  await stop(runtime);
  runtime = await start([watch]);
  await append(runtime, 'a', '3');
  await append(runtime, 'b', '2');
  await settled(runtime);
  expect(got).toEqual(['a 1', 'b 1', 'b 2']);
  const letters = await runtime.reactors.deadLetters('watch');
  expect(letters.map(({ position, attempts, error }) => [position, attempts, error?.message])).toEqual([
    [2n, 4, expect.stringContaining("handling 'Credited' at position 2 (stream 'a'")],
    [3n, 0, undefined],
    [5n, 0, undefined],
  ]);
  expect(letters[0]?.error?.message).toContain('failed 4 times: 13 is bad luck');
  expect(letters[0]?.error?.stack).toContain('reactors.test.ts');
  expect((await status(runtime))?.deadLetters).toBe(3);

  // The first request fails: the dead letter stays, after as many attempts as the rules allow.
  expect(await runtime.reactors.redeliver('watch', 'retry', step)).toBe(3);
  const asked = async () => (await runtime.reactors.deadLetters('watch')).some(({ requested }) => requested);
  await until(async () => !(await asked()));
  expect((await runtime.reactors.deadLetters('watch')).map(({ attempts }) => attempts)).toEqual([8, 0, 0]);

  mended = true;
  await runtime.reactors.redeliver('watch', 'retry', step, letters[0]?.key);
  await until(async () => (await runtime.reactors.deadLetters('watch')).length === 0);
  await append(runtime, 'a', '4');
  await settled(runtime);
  expect(got.slice(3)).toEqual(['a 13', 'a 2', 'a 3', 'a 4']);
  expect((await status(runtime))?.handled).toBe(7n);
  await expect(runtime.reactors.redeliver('watch', 'retry', step)).rejects.toThrow('watch has no dead letters.');
});

test('a discarded event is left out, and the events blocked behind it are handled', async () => {
  const got: string[] = [];
  const watch = onCredits(
    ({ payload }) => {
      if (payload.amount === '13') throw new Error('bad luck');
      got.push(payload.amount);
    },
    { onError: { policy: 'dead-letter', retries: [] } },
  );
  const runtime = await start([watch]);
  await append(runtime, 'a', '13', '1', '13', '2');
  await settled(runtime);
  await runtime.reactors.redeliver('watch', 'discard', step);
  await until(async () => got.length === 1);
  // The other event has been tried by then.
  await until(async () => {
    const letters = await runtime.reactors.deadLetters('watch');
    return letters.length === 2 && letters.every(({ requested }) => requested === null);
  });
  await runtime.reactors.redeliver('watch', 'discard', step);
  await until(async () => (await status(runtime))?.deadLetters === 0);
  expect(got).toEqual(['1', '2']);
  expect((await runtime.reactors.history('watch')).map(({ operation: what, actor }) => `${actor}: ${what}`)).toEqual([
    'ann: letters discarded',
    'ann: letters discarded',
    'test: declared',
  ]);
});

test('an operator’s request during a failing retry of a dead letter is done after it', async () => {
  let meanwhile = async () => {};
  const watch = onCredits(
    async () => {
      await meanwhile();
      throw new Error('bad luck');
    },
    { onError: { policy: 'dead-letter', retries: [] } },
  );
  const runtime = await start([watch]);
  await append(runtime, 'a', '13');
  await settled(runtime);
  meanwhile = async () => void (await runtime.reactors.redeliver('watch', 'discard', step));
  await runtime.reactors.redeliver('watch', 'retry', step);
  const done = await until(async () => {
    const letters = await runtime.reactors.deadLetters('watch');
    return letters.every(({ attempts, requested }) => attempts > 1 && requested === null) && { letters };
  });
  expect(done.letters).toEqual([]);
});

test('retries follow the class of the error: some errors are retried, some are not', async () => {
  class Busy extends Error {}
  const tries: string[] = [];
  const skipped: string[] = [];
  const watch = onCredits(
    ({ payload }, { attempt }) => {
      tries.push(`${payload.amount}#${attempt}`);
      if (payload.amount === '1') throw new Busy();
      if (payload.amount === '2') throw Object.assign(new Error(), { code: 'EPIPE' });
      if (payload.amount === '3') throw new CommandRejected('no');
    },
    {
      onError: {
        policy: 'skip',
        retries: [
          { on: Busy, times: 2, first: 1 },
          { on: ['EPIPE', (error) => error === 'never'], times: 1, first: 1 },
        ],
        onSkip: ({ event, attempts }) => void skipped.push(`${event.position} after ${attempts}`),
      },
    },
  );
  const runtime = await start([watch]);
  await append(runtime, 'a', '1', '2', '3', '4');
  await settled(runtime);
  expect(tries).toEqual(['1#1', '1#2', '1#3', '2#1', '2#2', '3#1', '4#1']);
  expect(skipped).toEqual(['1 after 3', '2 after 2', '3 after 1']);
  expect(await status(runtime)).toMatchObject({ handled: 1n, skipped: 3n });
});

test('an attempt that takes too long is aborted through its signal, and counts as failed', async () => {
  const reasons: string[] = [];
  const watch = onCredits(
    async (_, { signal, attempt }) => {
      if (attempt === 2) return;
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
    {
      timeout: 20,
      onError: { policy: 'stop', retries: [{ on: (error) => !!reasons.push(String(error)), times: 1, first: 1 }] },
    },
  );
  const runtime = await start([watch]);
  await append(runtime, 'a', '1');
  await settled(runtime);
  expect(reasons).toEqual([expect.stringContaining("'Credited' was not handled within 20 ms")]);
});

test("with 'stop' a reactor stops before the event, reports it, and continues when it is resumed", async () => {
  let mended = false;
  const got: string[] = [];
  const watch = onCredits(
    ({ payload }) => {
      if (payload.amount === '13' && !mended) throw new Error('bad luck');
      got.push(payload.amount);
      return payload.amount === '99' ? 'stop' : 'ack';
    },
    { onError: { policy: 'stop', retries: [] } },
  );
  const runtime = await start([watch]);
  await append(runtime, 'a', '1', '13', '2');
  await until(async () => (await status(runtime))?.state === 'stopped');
  expect(await status(runtime)).toMatchObject({
    position: 1n,
    error: { message: expect.stringContaining('bad luck') },
  });
  expect(got).toEqual(['1']);
  mended = true;
  await runtime.reactors.resume('watch', step);
  await settled(runtime);
  expect(got).toEqual(['1', '13', '2']);
  await append(runtime, 'a', '99', '3');
  await until(async () => (await status(runtime))?.state === 'stopped');
  expect(await status(runtime)).toMatchObject({ position: 4n });
  await runtime.reactors.resume('watch', step);
  await settled(runtime);
  expect(got).toEqual(['1', '13', '2', '99', '3']);
  await expect(runtime.reactors.resume('watch', step)).rejects.toThrow('watch is neither paused nor stopped.');
});

test('an operator pauses a reactor, rewinds it and skips ahead, and the audit log records it', async () => {
  const got: string[] = [];
  const watch = onCredits(({ payload }) => got.push(payload.amount));
  const runtime = await start([watch]);
  const { reactors } = runtime;
  await append(runtime, 'a', '1', '2', '3');
  await settled(runtime);
  await reactors.pause('watch', step);
  await until(async () => (await status(runtime))?.owner === null);
  await append(runtime, 'a', '4');
  expect((await status(runtime))?.state).toBe('paused');
  await reactors.rewind('watch', globalPosition('1'), step);
  await reactors.resume('watch', step);
  await settled(runtime);
  expect(got).toEqual(['1', '2', '3', '2', '3', '4']);
  await reactors.pause('watch', step);
  await until(async () => (await status(runtime))?.owner === null);
  await append(runtime, 'a', '5', '6');
  await reactors.skipAhead('watch', globalPosition('5'), step);
  await reactors.resume('watch', step);
  await settled(runtime);
  expect(got.slice(6)).toEqual(['6']);
  expect(
    (await reactors.history('watch')).map(({ operation: what, from, to }) => `${what} ${from} ${to}`).reverse(),
  ).toEqual([
    'declared null 0',
    'paused 3 3',
    'rewound 3 1',
    'resumed 1 1',
    'paused 4 4',
    'skipped ahead 4 5',
    'resumed 5 5',
  ]);
  await expect(reactors.rewind('watch', globalPosition('6'), step)).rejects.toThrow('watch is at position 6');
  await expect(reactors.rewind('watch', globalPosition('9'), step)).rejects.toThrow(
    "watch can't be rewound to position 9: the log ends at 6.",
  );
  for (const [to, found] of [
    [undefined, 'undefined'],
    ['2', "the text '2'"],
    [2, '2'],
    [-1n, '-1'],
  ] as const) {
    const refusal = {
      code: 'BAD_USER_INPUT',
      message: `The change of 'watch' is not valid: to: a position of the log is needed, such as globalPosition('1042'); found ${found}.`,
    };
    await expect(reactors.rewind('watch', to as never, step)).rejects.toMatchObject(refusal);
    await expect(reactors.skipAhead('watch', to as never, step)).rejects.toMatchObject(refusal);
  }
  await expect(reactors.pause('watch', undefined as never)).rejects.toThrow(
    "The change of 'watch' is not valid: actor: the audit log keeps who changes the reactor, and a text is needed; reason: the audit log keeps why the reactor is changed, and a text is needed",
  );
  await expect(reactors.rewind('watch', globalPosition('1'), { actor: 'ann', reason: '' })).rejects.toThrow(
    "The change of 'watch' is not valid: reason: the audit log keeps why the reactor is changed, and a text is needed",
  );
  await expect(reactors.skipAhead('watch', globalPosition('9'), step)).rejects.toThrow('watch is at position 6 of 6');
  await expect(reactors.forget('watch', step)).rejects.toThrow('watch is owned by test');
  await expect(reactors.pause('other', step)).rejects.toThrow('other is not known');
});

test('a rewind during a handler’s work stays in effect: the owner no longer moves the checkpoint', async () => {
  const gate = Promise.withResolvers<void>();
  const got: string[] = [];
  const watch = onCredits(async ({ payload }) => {
    got.push(payload.amount);
    if (payload.amount === '2' && got.length === 2) await gate.promise;
  });
  const runtime = await start([watch]);
  await append(runtime, 'a', '1', '2');
  await until(() => got.length === 2);
  await until(async () => (await status(runtime))?.position === 1n);
  await runtime.reactors.rewind('watch', globalPosition('0'), step);
  gate.resolve();
  await settled(runtime);
  expect(got).toEqual(['1', '2', '1', '2']);
});

test('a stop waits for the running handlers', async () => {
  const gate = Promise.withResolvers<void>();
  const got: string[] = [];
  const watch = onCredits(async ({ payload }) => {
    got.push(`begins ${payload.amount}`);
    await gate.promise;
    got.push(`ends ${payload.amount}`);
  });
  const runtime = await start([watch]);
  await append(runtime, 'a', '1', '2');
  await until(() => got.length === 1);
  const stopped = stop(runtime);
  await turn();
  gate.resolve();
  await stopped;
  expect(got).toEqual(['begins 1', 'ends 1']);
  expect(await status(await start([], { maintain: false }))).toMatchObject({
    position: 1n,
    owner: null,
    state: 'idle',
  });
});

test('a stop does not wait forever for a handler that hangs: its signal aborts, and the event is handled again', async () => {
  const signals: AbortSignal[] = [];
  const hanging = onCredits((_, { signal }) => {
    signals.push(signal);
    return new Promise(() => {});
  });
  const runtime = await start([hanging], { stopTimeout: 0 });
  await append(runtime, 'a', '1');
  await until(() => signals.length === 1);
  await stop(runtime);
  expect(signals[0]?.aborted).toBe(true);
  const got: string[] = [];
  await settled(await start([onCredits(({ payload }) => got.push(payload.amount))]));
  expect(got).toEqual(['1']);
});

test('a step runs once, with any outcome: a refusal stays, even if the command would be accepted now', async () => {
  const outcomes: string[] = [];
  let crashes = 2;
  const watch = onCredits(
    async ({ streamId }, { execute, messageId, attempt }) => {
      const told = async (what: string, done: Promise<{ events: readonly RecordedEvent[] }>) =>
        outcomes.push(
          await done.then(
            ({ events }) => `${what}: ${events.length}`,
            (error: Error) => `${what}: ${error.message}`,
          ),
        );
      if (streamId !== 'a') return;
      await told('open', execute(openAccount, { accountId: 'b', owner: 'Bo' }, { step: 'open' }));
      await told('open again', execute(openAccount, { accountId: 'b', owner: 'Bo' }, { step: 'open again' }));
      await told('credit c', execute(credit, { accountId: 'c', amount: '5' }, { step: 'to c' }));
      const toB = { step: 'to b', metadata: { actor: 'watch' } };
      await told('credit b', execute(credit, { accountId: 'b', amount: '5' }, toB));
      // From now on, the refused command would be accepted.
      await runtime.execute(openAccount, { accountId: 'c', owner: 'Cy' }).catch(() => {});
      expect(messageId).toMatch(/^watch\/[0-9a-f-]{36}$/);
      if (crashes-- > 0) throw new Error(`crash ${attempt}`);
    },
    { onError: { policy: 'stop', retries: quick } },
  );
  const runtime = await start([watch]);
  const { events } = await runtime.log.append({
    family: account,
    streamId: 'a',
    events: [{ type: 'Credited', payload: { amount: '1' } }],
    metadata: { correlationId: 'request-1' },
  });
  await settled(runtime);
  const once = [
    'open: 1',
    'open again: The account exists already.',
    'credit c: The account is not open.',
    'credit b: 1',
  ];
  expect(outcomes).toEqual([...once, ...once, ...once]);
  const written: RecordedEvent[] = [];
  for (const streamId of ['b', 'c'])
    for await (const event of runtime.log.readStream(account, streamId)) written.push(event);
  expect(written.map(({ streamId, type }) => `${streamId} ${type}`)).toEqual(['b Opened', 'b Credited', 'c Opened']);
  const caused = { correlationId: 'request-1', causationId: events[0]?.id, reactions: { watch: 1 } };
  expect(written[0]?.metadata).toEqual(caused);
  expect(written[1]?.metadata).toEqual({ ...caused, actor: 'watch' });
});

test('a reactor has one owner among two processes, and the other takes over when it stops', async () => {
  const got: string[] = [];
  const named = (name: string) => onCredits(({ payload }) => got.push(`${name} ${payload.amount}`));
  const first = await start([named('first')]);
  await append(first, 'a', '1');
  await settled(first);
  const second = await start([named('second')]);
  await append(first, 'a', '2');
  await settled(first);
  await stop(first);
  await append(second, 'a', '3');
  await settled(second);
  expect(got).toEqual(['first 1', 'first 2', 'second 3']);
});

test('a reactor whose checkpoint the server refuses while events wait continues when the server accepts it again', async () => {
  // More events than a reactor handles at once, so a page of them waits.
  const count = 1100;
  const gate = Promise.withResolvers<void>();
  let started = 0;
  const handled = new Set<bigint>();
  const watch = onCredits(
    async ({ position, streamId }, { signal }) => {
      started++;
      if (streamId === 'a') await gate.promise;
      else if (started === 2)
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      handled.add(position);
    },
    { concurrency: 2 },
  );
  const admin = new pg.Client({ connectionString: setting.database.superuserUrl });
  await admin.connect();
  await admin.query(`
    create sequence refusals;
    create function refuse() returns trigger language plpgsql security definer as $$
      begin
        perform nextval('refusals');
        raise exception 'could not extend file' using errcode = 'disk_full';
      end $$;
    create trigger refuse before update of checkpoint on refold.reactors
      for each row when (new.checkpoint > old.checkpoint) execute function refuse()`);
  const runtime = await start([watch]);
  const credits = (length: number) =>
    Array.from({ length }, () => ({ type: 'Credited', payload: { amount: '1' } }) as const);
  await runtime.log.append({ family: account, streamId: 'a', events: credits(1) });
  await until(() => started === 1);
  await runtime.log.append({ family: account, streamId: 'b', events: credits(count - 1) });
  await until(() => started === 2);
  for (let turns = 0; turns < 100; turns++) await turn(); // the next page is read meanwhile
  gate.resolve();
  await until(async () => {
    const { rows } = await admin.query<{ is_called: boolean }>('select is_called from refusals');
    return rows[0]?.is_called === true;
  });
  await admin.query('drop trigger refuse on refold.reactors');
  await admin.end();
  await settled(runtime);
  expect(handled.size).toBe(count);
});

test('a reactor that was claimed runs, also if its former owner can not be declared gone', async () => {
  const admin = new pg.Client({ connectionString: setting.database.superuserUrl });
  await admin.connect();
  await admin.query(`
    insert into refold.processes (id, name, declares, owns, keeps, role, versions)
    values (gen_random_uuid(), 'gone', '{reactor watch@0/0}', '{reactor watch@0/0}', '{}', 'worker', '{}');
    create function refuse() returns trigger language plpgsql security definer as $$
      begin
        raise exception 'could not extend file' using errcode = 'disk_full';
      end $$;
    create trigger refuse before delete on refold.processes
      for each row when (old.name = 'gone') execute function refuse()`);
  await admin.end();
  const got: string[] = [];
  const runtime = await start([onCredits(({ payload }) => got.push(payload.amount))]);
  await append(runtime, 'a', '1');
  await settled(runtime);
  expect(got).toEqual(['1']);
});
