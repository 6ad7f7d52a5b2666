import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../src/index.ts';
import { createLifecycle } from '../../src/runtime/versions/lifecycle.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { seeded } from '../../test/support/account-traffic.ts';
import { until } from '../../test/support/until.ts';
import { operatedConfig } from '../apart.ts';
import { claim, claims, valueAt } from '../claims.ts';
import { families } from '../domain.ts';
import { acknowledge } from '../ledger.ts';
import { attempt, createOperator, NothingToDo } from '../operator.ts';
import { isAway } from '../traffic.ts';
import type { World } from '../world.ts';

const { name } = claims(1);
const by = { actor: 'chaos', reason: 'while values are claimed' };
/** Between two transitions, clients' claims are checked at once. */
const calmMs = 300;
const strangers = 3;
/** A stranger waits no longer for somebody who could check its claim. */
const strangerMs = 300;
/** On a busy machine, a version that joins the appends holds them for as long. */
const refusals: ReadonlySet<string> = new Set(['UNIQUE_CHECK_UNAVAILABLE', 'STREAM_LOCKED']);

/**
 * All clients claim the same few values, and so do writers without the code that checks them, while the versions that check them are in one
 * transition after another.
 */
export async function claimValues(world: World, seconds: number, draw: number): Promise<void> {
  const end = Date.now() + seconds * 1_000;
  const unchecked = createEventLog(world.db, families, { lockTimeoutMs: strangerMs });
  world.clients.claimFor(seconds * 1_000);
  const writing = Promise.all(
    Array.from({ length: strangers }, async (_, number) => {
      const random = seeded(world.options.seed + world.ledger.entries.length + number);
      while (Date.now() < end) await claimUnchecked(world, unchecked, random);
    }),
  );
  writing.catch(() => {}); // awaited below
  const operate = createOperator(world, name);
  const transitions = [
    () => operate({ kind: 'rebuild', draw }),
    () => pauseForAMoment(world),
    () => operate({ kind: 'take a snapshot', draw }),
    () => operate({ kind: 'rebuild in place', draw }),
    () => operate({ kind: 'rebuild from a snapshot', draw, inPlace: draw < 0.5 }),
  ];
  for (let turn = Math.floor(draw * transitions.length); Date.now() < end; turn++) {
    const next = transitions[turn % transitions.length];
    if (next) await attempt(next);
    await pause(calmMs);
  }
  await writing;
}

async function pauseForAMoment({ db, url, storeServer }: World): Promise<string> {
  const active = (await readRegistry(db)).findLast((one) => one.name === name && one.state === 'active');
  if (!active) throw new NothingToDo();
  const lifecycle = createLifecycle(db, 'read_models', operatedConfig(url, storeServer.url));
  await lifecycle.pause(name, active.version, by);
  // Until it is, whatever happens to the database. A promotion may have lost the pause.
  await until(() =>
    lifecycle.resume(name, active.version, by).then(
      () => true,
      (error: unknown) => {
        if (isAway(error)) return false;
        if (error instanceof RefoldError && error.code === 'INVALID_TRANSITION') return true;
        throw error;
      },
    ),
  );
  return '';
}

async function claimUnchecked({ ledger }: World, log: EventLog, random: () => number): Promise<void> {
  const streamId = `claim-${ledger.entries.length}`;
  const entry = ledger.begin(-1, [{ family: claim.name, streamId, types: ['Claimed'] }]);
  const { append } = entry;
  const events = [{ type: 'Claimed', payload: { append, part: 0, value: valueAt(append, random) } }] as const;
  const sentAt = Date.now();
  try {
    const written = await log.append({ family: claim, streamId, events });
    acknowledge(
      entry,
      written.events.map(({ position }) => position),
      sentAt,
    );
  } catch (error) {
    const isRefused = error instanceof RefoldError && refusals.has(error.code);
    entry.outcome = isRefused ? 'refused' : 'unknown';
    if (!isRefused && !isAway(error)) throw error;
  }
}
