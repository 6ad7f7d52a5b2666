import { setTimeout as pause } from 'node:timers/promises';
import { readHead } from '../../store/log/horizon.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { nextCopy, raiseGeneration } from '../../store/registry/copies.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { recordOperation } from '../../store/registry/transitions.ts';
import { logOf, type Queryable } from '../../store/statements/statement.ts';
import { expectVersion, refused } from '../versions/expect-version.ts';
import { pointView } from '../versions/lifecycle.ts';
import type { MoveOptions, Moving } from './begin-move.ts';

// More moves than a version makes between two looks at a store that does not respond.
const unknownMoves = 10;
const betweenPolls = 100;

/**
 * Lets a copy answer again that a move has left in this store. It was maintained all the time, so nothing is built. Works also if the store that
 * has the version now does not respond.
 *
 * @throws RefoldError `INVALID_TRANSITION` if the copy can't answer
 */
export async function bringBack({ projection, from }: Moving, { to, readSchema, step }: MoveOptions): Promise<void> {
  const { name, version } = projection;
  const head = await readHead(logOf(to.db));
  const copyOf = async (db: Queryable) => {
    const found = (await readRegistry(db)).find((one) => one.name === name && one.version === version);
    return found ?? Promise.reject(refused(name, version, 'is not in the registry any more.'));
  };
  // No client that has seen newer rows must see older ones.
  for (let copy = await copyOf(to.db); copy.checkpoint < head; copy = await copyOf(to.db)) {
    if (copy.status !== 'running' || copy.state !== 'active')
      throw refused(name, version, `has a copy in '${to.name}' that nobody keeps current: ${whyNot(copy)}.`);
    await pause(betweenPolls);
  }
  const present = await copyOf(from.db).catch((error: unknown) => {
    if (isOutage(error)) return undefined;
    throw error;
  });
  await to.db.transaction(async (tx) => {
    const { state, heldReason, generation } = await expectVersion(tx, name, version);
    if (state !== 'active') throw refused(name, version, `has a copy in '${to.name}' that is ${state}.`);
    const above = Math.max(generation, present?.generation ?? nextCopy(generation) * unknownMoves);
    await raiseGeneration(tx, projection, nextCopy(above));
    await recordOperation(
      tx,
      { name, version, state, heldReason },
      { actor: step.actor, reason: `came back from the store '${from.name}': ${step.reason}` },
    );
    await pointView(tx, readSchema, name);
  });
}

function whyNot({ state, status, error }: RegisteredVersion): string {
  return error?.message ?? (state === 'active' ? `its processor is ${status}` : `it is ${state}`);
}
