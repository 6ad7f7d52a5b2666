import { setTimeout as pause } from 'node:timers/promises';
import type { Projection } from '../../projections/projection/projection.ts';
import { readHead } from '../../store/log/horizon.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import type { ReadStore } from '../../store/read-store.ts';
import { nextCopy, raiseGeneration, recordArrival } from '../../store/registry/copies.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { recordOperation } from '../../store/registry/transitions.ts';
import { logOf, type Queryable } from '../../store/statements/statement.ts';
import { expectVersion, refused } from '../versions/expect-version.ts';
import { pointViews } from '../versions/version-tables.ts';
import type { MoveOptions, Moving } from './moving.ts';

// More moves than a version makes between two looks at a store that does not respond.
const unknownMoves = 10;
const betweenPolls = 100;

/**
 * Lets copies answer again that a move has left in this store, all in one transaction. They were maintained all the time, so nothing is built.
 * Works also if the store that has the versions now does not respond.
 *
 * @throws RefoldError `INVALID_TRANSITION` if one of the copies can't answer
 */
export async function bringBack(moving: readonly Moving[], { to, readSchema, step }: MoveOptions): Promise<void> {
  const head = await readHead(logOf(to.db));
  for (const one of moving) await untilCurrent(one, to, head);
  const above = await Promise.all(moving.map(({ projection, from }) => generationIn(from.db, projection)));
  const returned: { readonly from: ReadStore; readonly copy: Parameters<typeof recordArrival>[1] }[] = [];
  await to.db.transaction(async (tx) => {
    for (const [index, { projection, from }] of moving.entries()) {
      const { name, version } = projection;
      const { state, heldReason, generation } = await expectVersion(tx, name, version);
      if (state !== 'active') throw refused(name, version, `has a copy in '${to.name}' that is ${state}.`);
      const present = above[index] ?? nextCopy(generation) * unknownMoves;
      const raised = nextCopy(Math.max(generation, present));
      await raiseGeneration(tx, projection, raised);
      if (above[index] !== undefined) returned.push({ from, copy: { name, version, generation: raised } });
      const reason = `came back from the store '${from.name}': ${step.reason}`;
      await recordOperation(tx, { name, version, state, heldReason }, { actor: step.actor, reason });
    }
    await pointViews(tx, readSchema, [...new Set(moving.map(({ projection }) => projection.name))]);
  });
  // The store that had them until now must know it, for a time in which this one does not respond.
  for (const { from, copy } of returned) await recordArrival(from.db, copy, to.name).catch(ignoreOutage);
}

function ignoreOutage(error: unknown): void {
  if (!isOutage(error)) throw error;
}

/** No client that has seen newer rows must see older ones. */
async function untilCurrent({ projection }: Moving, { name: store, db }: ReadStore, head: bigint): Promise<void> {
  const { name, version } = projection;
  for (;;) {
    const copy = (await readRegistry(db)).find((one) => one.name === name && one.version === version);
    if (!copy) throw refused(name, version, 'is not in the registry any more.');
    if (copy.checkpoint >= head) return;
    if (copy.status !== 'running' || copy.state !== 'active')
      throw refused(name, version, `has a copy in '${store}' that nobody keeps current: ${whyNot(copy)}.`);
    await pause(betweenPolls);
  }
}

/** Undefined if the store does not respond. */
async function generationIn(db: Queryable, { name, version }: Projection): Promise<number | undefined> {
  try {
    return (await readRegistry(db)).find((one) => one.name === name && one.version === version)?.generation;
  } catch (error) {
    if (!isOutage(error)) throw error;
    return undefined;
  }
}

function whyNot({ state, status, error }: RegisteredVersion): string {
  return error?.message ?? (state === 'active' ? `its processor is ${status}` : `it is ${state}`);
}
